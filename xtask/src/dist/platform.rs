//! Where a program runs, read from the program itself: a package must not promise more than what is
//! in it.

use anyhow::{Context as _, Result, ensure};

/// One kind of machine and system, in the words of each kind of package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    pub(super) triple: &'static str,
    machine: u16,
    linkage: Linkage,
    pub(super) debian: &'static str,
    /// A program that is not static says which packages it needs.
    pub(super) debian_depends: Option<&'static str>,
    /// A static program runs beside every C library. One that is not runs where it was built, and
    /// registries refuse its tag.
    pub(super) wheel: &'static [&'static str],
    pub(super) npm_processor: &'static str,
    pub(super) npm_library: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    Static,
    Dynamic,
}

/// The numbers of ELF for processors.
const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// The kind of a program header that names the dynamic linker.
const INTERPRETER: u32 = 3;

const PLATFORMS: &[Platform] = &[
    Platform {
        triple: "x86_64-unknown-linux-musl",
        machine: X86_64,
        linkage: Linkage::Static,
        debian: "amd64",
        debian_depends: None,
        wheel: &[
            "manylinux_2_17_x86_64",
            "manylinux2014_x86_64",
            "musllinux_1_1_x86_64",
        ],
        npm_processor: "x64",
        npm_library: None,
    },
    Platform {
        triple: "aarch64-unknown-linux-musl",
        machine: AARCH64,
        linkage: Linkage::Static,
        debian: "arm64",
        debian_depends: None,
        wheel: &[
            "manylinux_2_17_aarch64",
            "manylinux2014_aarch64",
            "musllinux_1_1_aarch64",
        ],
        npm_processor: "arm64",
        npm_library: None,
    },
    Platform {
        triple: "x86_64-unknown-linux-gnu",
        machine: X86_64,
        linkage: Linkage::Dynamic,
        debian: "amd64",
        debian_depends: Some("libc6, libgcc-s1"),
        wheel: &["linux_x86_64"],
        npm_processor: "x64",
        npm_library: Some("glibc"),
    },
    Platform {
        triple: "aarch64-unknown-linux-gnu",
        machine: AARCH64,
        linkage: Linkage::Dynamic,
        debian: "arm64",
        debian_depends: Some("libc6, libgcc-s1"),
        wheel: &["linux_aarch64"],
        npm_processor: "arm64",
        npm_library: Some("glibc"),
    },
];

impl Platform {
    /// The platform of static programs for this machine, which is what is released.
    pub(super) fn to_release() -> Result<&'static Self> {
        let machine = std::env::consts::ARCH;
        let found = PLATFORMS.iter().find(|platform| {
            platform.linkage == Linkage::Static && platform.triple.starts_with(machine)
        });
        found.with_context(|| format!("there is no description of packages for {machine}"))
    }

    /// Reads the platform of a program.
    pub(super) fn of_program(program: &[u8]) -> Result<&'static Self> {
        let (machine, linkage) = read_elf(program).context("this is no program for Linux")?;
        let found = PLATFORMS
            .iter()
            .find(|platform| platform.machine == machine && platform.linkage == linkage);
        found.with_context(|| format!("there is no description of packages for machine {machine}"))
    }
}

/// Reads the processor of an ELF file of 64 bits, and whether it asks for a dynamic linker.
fn read_elf(bytes: &[u8]) -> Result<(u16, Linkage)> {
    const LITTLE_64: &[u8] = &[0x7f, b'E', b'L', b'F', 2, 1];
    ensure!(
        bytes.starts_with(LITTLE_64),
        "it is not an ELF file of 64 bits"
    );
    let machine = u16::from_le_bytes(read(bytes, 18)?);
    let headers = usize::try_from(u64::from_le_bytes(read(bytes, 32)?))?;
    let size = usize::from(u16::from_le_bytes(read(bytes, 54)?));
    let count = usize::from(u16::from_le_bytes(read(bytes, 56)?));
    for number in 0..count {
        let at = headers.saturating_add(number * size);
        if u32::from_le_bytes(read(bytes, at)?) == INTERPRETER {
            return Ok((machine, Linkage::Dynamic));
        }
    }
    Ok((machine, Linkage::Static))
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().context("the ELF file is cut off")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The least that is read as a program: a header, and one program header of this kind.
    pub(in crate::dist) fn elf(machine: u16, kind: u32) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
        bytes[64..68].copy_from_slice(&kind.to_le_bytes());
        bytes
    }

    #[test]
    fn a_program_says_where_it_runs() {
        for (machine, kind, triple) in [
            (X86_64, 1, "x86_64-unknown-linux-musl"),
            (X86_64, INTERPRETER, "x86_64-unknown-linux-gnu"),
            (AARCH64, 1, "aarch64-unknown-linux-musl"),
        ] {
            let platform = Platform::of_program(&elf(machine, kind)).unwrap();
            assert_eq!(platform.triple, triple);
        }
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let mut cut = elf(X86_64, 1);
        cut.truncate(60);
        for bytes in [b"#!/bin/sh\n".to_vec(), Vec::new(), cut, elf(40, 1)] {
            assert!(Platform::of_program(&bytes).is_err(), "{bytes:?}");
        }
    }

    /// A test program of the ordinary toolchain is not static.
    #[test]
    fn this_program_is_read_as_what_it_is() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let platform = Platform::of_program(&bytes).unwrap();
        assert!(platform.triple.starts_with(std::env::consts::ARCH));
        let is_static = cfg!(target_env = "musl");
        assert_eq!(platform.linkage == Linkage::Static, is_static);
    }
}
