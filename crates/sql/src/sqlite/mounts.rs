//! Which file systems a lock file may live on: local ones.
//!
//! On a network file system locks of one machine mean nothing to another, and SQLite's log needs memory that all
//! its users share. The type is read from the kernel's table of mounts, so a new type has to be added to the list;
//! one that is not listed is taken for local.

use std::path::Path;

/// File systems that several machines can mount at once, or that pretend to be files and are not.
const SHARED: &[&str] = &[
    "9p",
    "acfs",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.davfs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.goofys",
    "fuse.juicefs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "fuse.vmhgfs-fuse",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb2",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
];

/// The type of the file system this folder is on, if that is one no lock file may live on.
///
/// `device` is the folder's, as `major:minor`. Some file systems show files under another device than the mount's;
/// then the longest mount point above the folder decides.
pub(super) fn shared_type<'t>(table: &'t str, folder: &Path, device: &str) -> Option<&'t str> {
    let mounts = || table.lines().filter_map(Mount::parse);
    // A later line with the same device or point hides an earlier one.
    let by_device = mounts().rfind(|mount| mount.device == device);
    let found = by_device.or_else(|| {
        let above = mounts().filter(|mount| folder.starts_with(&mount.point));
        above.max_by_key(|mount| mount.point.len())
    })?;
    SHARED.contains(&found.kind).then_some(found.kind)
}

/// One line of `/proc/self/mountinfo`: `36 35 98:0 /root /point options [tags] - type source super-options`.
struct Mount<'t> {
    device: &'t str,
    point: String,
    kind: &'t str,
}

impl<'t> Mount<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(2);
        let (device, _root, point) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self { device, point: unescape(point), kind: system.split(' ').next()? })
    }
}

/// The kernel writes blanks and backslashes in paths as three octal digits.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => plain.push_str(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
25 22 0:23 / /home rw,nosuid master:3 - nfs4 server:/export/home rw,vers=4.2
26 22 0:31 / /mnt/with\\040blank rw - fuse.sshfs me@there:/ rw
27 22 0:40 / /srv rw - btrfs /dev/vdb rw,subvol=/srv
28 25 0:41 / /home/me/cache rw shared:5 master:6 - tmpfs tmpfs rw
nonsense
";

    #[test]
    fn the_device_decides() {
        assert_eq!(shared_type(TABLE, Path::new("/home/me"), "0:23"), Some("nfs4"));
        assert_eq!(shared_type(TABLE, Path::new("/home/me"), "254:0"), None);
        assert_eq!(shared_type(TABLE, Path::new("/home/me/cache"), "0:41"), None);
    }

    #[test]
    fn the_longest_mount_point_decides_where_the_device_is_not_listed() {
        assert_eq!(shared_type(TABLE, Path::new("/home/me"), "0:99"), Some("nfs4"));
        assert_eq!(shared_type(TABLE, Path::new("/home/me/cache/x"), "0:99"), None);
        assert_eq!(shared_type(TABLE, Path::new("/homeless"), "0:99"), None);
        assert_eq!(shared_type(TABLE, Path::new("/srv/a"), "0:99"), None);
        assert_eq!(shared_type(TABLE, Path::new("/mnt/with blank/a"), "0:99"), Some("fuse.sshfs"));
    }

    #[test]
    fn a_table_that_says_nothing_refuses_nothing() {
        assert_eq!(shared_type("", Path::new("/"), "0:1"), None);
        assert_eq!(shared_type("\n - \n1 2 - nfs\n", Path::new("/"), "0:1"), None);
    }

    #[test]
    fn a_cluster_file_system_counts_as_shared() {
        for kind in
            ["nfs", "cifs", "smb3", "ceph", "lustre", "9p", "ocfs2", "gfs2", "fuse.rclone", "virtiofs"]
        {
            let table = format!("30 1 0:50 / / rw - {kind} source rw\n");
            assert_eq!(shared_type(&table, Path::new("/x"), "0:50"), Some(kind));
        }
    }
}
