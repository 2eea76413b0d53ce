//! What is packaged, and where each part of it lies in each kind of package.

pub(super) const NAME: &str = "planwright";
/// All crates of the workspace have one version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
pub(super) const LICENSE: &str = "Apache-2.0";
pub(super) const AUTHORS: &str = "The Planwright authors";
pub(super) const SUMMARY: &str =
    "Plans people can trust: propose, review, approve, run, resume and audit";
/// Lines of at most 78 columns, for listings of packages.
pub(super) const DETAILS: &[&str] = &[
    "An agent, or a person, proposes a plan: a graph of tool calls. Planwright",
    "checks it, shows it, asks, runs it in parallel with every step journaled,",
    "continues after a crash without doing anything twice, and can prove",
    "afterwards what happened.",
];

/// Something that is packaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Program,
    Readme,
    License,
    /// The licenses of the crates that the program contains.
    Notices,
    BashCompletions,
    ZshCompletions,
    FishCompletions,
}

impl Part {
    pub(super) fn is_executable(self) -> bool {
        self == Self::Program
    }
}

/// A part and its place in each kind of package. `VERSION` stands for the version.
pub(super) struct Item {
    pub(super) part: Part,
    /// Below the one folder of the tarball.
    pub(super) tarball: &'static str,
    /// Below the root of the system.
    pub(super) debian: &'static str,
    /// `.data` is installed by its scheme, `.dist-info` as it is.
    pub(super) wheel: Option<&'static str>,
    /// Below the folder of the package.
    pub(super) npm: Option<&'static str>,
}

pub(super) const ITEMS: &[Item] = &[
    Item {
        part: Part::Program,
        tarball: "planwright",
        debian: "usr/bin/planwright",
        wheel: Some("planwright-VERSION.data/scripts/planwright"),
        npm: Some("bin/planwright"),
    },
    // A wheel has it as its description.
    Item {
        part: Part::Readme,
        tarball: "README.md",
        debian: "usr/share/doc/planwright/README.md",
        wheel: None,
        npm: Some("README.md"),
    },
    Item {
        part: Part::License,
        tarball: "LICENSE",
        debian: "usr/share/doc/planwright/copyright",
        wheel: Some("planwright-VERSION.dist-info/licenses/LICENSE"),
        npm: Some("LICENSE"),
    },
    Item {
        part: Part::Notices,
        tarball: "THIRD-PARTY-LICENSES.txt",
        debian: "usr/share/doc/planwright/THIRD-PARTY-LICENSES.txt",
        wheel: Some("planwright-VERSION.dist-info/licenses/THIRD-PARTY-LICENSES.txt"),
        npm: Some("THIRD-PARTY-LICENSES.txt"),
    },
    Item {
        part: Part::BashCompletions,
        tarball: "completions/planwright.bash",
        debian: "usr/share/bash-completion/completions/planwright",
        wheel: Some("planwright-VERSION.data/data/share/bash-completion/completions/planwright"),
        npm: None,
    },
    Item {
        part: Part::ZshCompletions,
        tarball: "completions/_planwright",
        debian: "usr/share/zsh/vendor-completions/_planwright",
        wheel: Some("planwright-VERSION.data/data/share/zsh/site-functions/_planwright"),
        npm: None,
    },
    Item {
        part: Part::FishCompletions,
        tarball: "completions/planwright.fish",
        debian: "usr/share/fish/vendor_completions.d/planwright.fish",
        wheel: Some("planwright-VERSION.data/data/share/fish/vendor_completions.d/planwright.fish"),
        npm: None,
    },
];
