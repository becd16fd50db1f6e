//! Certificates for servers that speak TLS: an authority of our own, and one for `localhost` that it signed.

use std::{fs, io, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// Writes `ca.pem`, `server.pem` and `server.key` into this folder.
///
/// # Errors
/// If they cannot be made or written.
pub fn make_certificates(folder: &Path) -> io::Result<()> {
    let mut authority = CertificateParams::new(Vec::new()).map_err(io::Error::other)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let authority = CertifiedIssuer::self_signed(authority, key).map_err(io::Error::other)?;
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let server = CertificateParams::new(vec!["localhost".to_owned()]).map_err(io::Error::other)?;
    let server = server.signed_by(&key, &authority).map_err(io::Error::other)?;
    fs::write(folder.join("ca.pem"), authority.pem())?;
    fs::write(folder.join("server.pem"), server.pem())?;
    fs::write(folder.join("server.key"), key.serialize_pem())
}
