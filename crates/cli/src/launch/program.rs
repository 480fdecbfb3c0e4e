//! Can a library be loaded into this program? Its file says which loader starts it.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The loader of glibc on x86-64, wherever it is installed.
const LOADER: &str = "ld-linux-x86-64.so.2";
/// Scripts whose interpreters are scripts, at most.
const DEEPEST: usize = 4;
/// Longer tables of segments and longer names are not those of programs.
const LONGEST: usize = 64 << 10;

/// Why no library gets into a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Nothing loads libraries into it. What it starts is another matter.
    Static,
    /// This loads them, and it refuses those for glibc.
    OtherLoader(PathBuf),
    /// It runs with the rights of its owner, so the loader ignores what the user wants.
    OwnersRights,
}

impl Closed {
    /// Whether programs that it starts get the library through it: nothing loads it here, and nothing drops or refuses it.
    pub(crate) fn passes_on(&self) -> bool {
        matches!(self, Self::Static)
    }
}

impl Display for Closed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => out.write_str("is linked statically"),
            Self::OtherLoader(loader) => {
                write!(out, "is not a program for glibc on x86-64 ({})", loader.display())
            }
            Self::OwnersRights => out.write_str("runs with the rights of its owner (setuid or setgid)"),
        }
    }
}

/// What keeps libraries out of this program, of those that are known; the interpreter counts for a script.
pub(crate) fn closed(program: &OsStr) -> Option<Closed> {
    let mut path = found(program)?;
    for _ in 0..DEEPEST {
        let mut file = File::open(&path).ok()?;
        match Start::of(&mut file)? {
            Start::Script(interpreter) => path = found(&interpreter)?,
            Start::Program(Some(loader)) if loader.file_name() != Some(OsStr::new(LOADER)) => {
                return Some(Closed::OtherLoader(loader));
            }
            Start::Program(loader) => {
                let is_the_loader = path.file_name() == Some(OsStr::new(LOADER));
                let user = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
                return match loader {
                    _ if takes_rights(&file.metadata().ok()?, user) => Some(Closed::OwnersRights),
                    None if !is_the_loader => Some(Closed::Static),
                    _ => None,
                };
            }
        }
    }
    None
}

/// A program that could not be started: the error of the system is the same if the program is missing and if its interpreter is.
pub(crate) fn not_started(program: &OsStr) -> impl FnOnce(io::Error) -> Failure {
    move |error| {
        let path = Path::new(program);
        let interpreter =
            found(program).filter(|_| error.kind() == io::ErrorKind::NotFound).and_then(|path| {
                match Start::of(&mut File::open(path).ok()?)? {
                    Start::Script(interpreter) => Some(interpreter),
                    Start::Program(loader) => loader.map(PathBuf::into_os_string),
                }
            });
        match interpreter.filter(|interpreter| found(interpreter).is_none()) {
            Some(interpreter) => Failure::unreadable(format!(
                "{} cannot be started: its interpreter {} does not exist",
                path.display(),
                Path::new(&interpreter).display()
            )),
            None => Failure::unreadable_at(path)(error),
        }
    }
}

/// The file of a program: a name without a slash is searched for in PATH.
fn found(program: &OsStr) -> Option<PathBuf> {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|about| about.is_file() && about.mode() & 0o111 != 0);
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_program)
}

/// Whether the kernel gives a process of this program other rights than the user has.
fn takes_rights(about: &Metadata, (user, group): (u32, u32)) -> bool {
    let has = |bit: u32| about.mode() & bit != 0;
    // Without the group's right to execute, the bit means something else.
    (has(0o4000) && about.uid() != user) || (has(0o2000) && has(0o010) && about.gid() != group)
}

/// How a file starts.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Script(OsString),
    /// With its loader, unless it needs none.
    Program(Option<PathBuf>),
}

impl Start {
    /// `None` for what is neither, or cannot be read.
    fn of(file: &mut (impl Read + Seek)) -> Option<Self> {
        let mut head = Vec::new();
        file.by_ref().take(256).read_to_end(&mut head).ok()?;
        if let Some(line) = head.strip_prefix(b"#!") {
            return script(line).map(Self::Script);
        }
        if head.get(..4)? != b"\x7fELF" {
            return None;
        }
        // Programs of 32 bits, and of machines with the other byte order, have other loaders than ours.
        if head.get(4..6)? != [2, 1] {
            return Some(Self::Program(Some(PathBuf::from("another architecture"))));
        }
        let size = usize::from(u16_at(&head, 54)?);
        let segments = bytes_at(file, u64_at(&head, 32)?, size * usize::from(u16_at(&head, 56)?))?;
        // PT_INTERP.
        let is_loader = |segment: &&[u8]| segment.get(..4) == Some(&[3, 0, 0, 0]);
        let Some(segment) = segments.chunks(size.max(1)).find(is_loader) else {
            return Some(Self::Program(None));
        };
        let length = usize::try_from(u64_at(segment, 32)?).ok()?;
        let mut name = bytes_at(file, u64_at(segment, 8)?, length)?;
        name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
        Some(Self::Program(Some(PathBuf::from(OsString::from_vec(name)))))
    }
}

/// The interpreter in the first line of a script; the program that `env` looks for.
fn script(line: &[u8]) -> Option<OsString> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let interpreter = words.next()?;
    let word = match interpreter.rsplit(|byte| *byte == b'/').next() {
        Some(b"env") => words.find(|word| !word.starts_with(b"-") && !word.contains(&b'=')),
        _ => None,
    };
    Some(OsStr::from_bytes(word.unwrap_or(interpreter)).to_owned())
}

fn bytes_at(file: &mut (impl Read + Seek), offset: u64, length: usize) -> Option<Vec<u8>> {
    if length > LONGEST {
        return None;
    }
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::process::Command;

    /// A program in C with these options of the linker.
    fn built(folder: &Path, name: &str, words: &[&str]) -> PathBuf {
        let (source, program) = (folder.join("main.c"), folder.join(name));
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        assert!(
            Command::new("cc").args(words).arg("-o").arg(&program).arg(&source).status().unwrap().success()
        );
        program
    }

    fn written(path: PathBuf, text: &str) -> PathBuf {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn programs_say_which_loader_starts_them() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(closed(built(folder, "usual", &[]).as_os_str()), None);
        let fixed = built(folder, "static", &["-static"]);
        assert_eq!(closed(fixed.as_os_str()), Some(Closed::Static));
        let musl = "/lib/ld-musl-x86_64.so.1";
        let other = built(folder, "musl", &[&format!("-Wl,--dynamic-linker={musl}")]);
        assert_eq!(closed(other.as_os_str()), Some(Closed::OtherLoader(musl.into())));
        for (text, expected) in [
            (format!("#!{}\n", fixed.display()), Some(Closed::Static)),
            (format!("#! {} -u\n", other.display()), Some(Closed::OtherLoader(musl.into()))),
            (format!("#!/usr/bin/env -S A=1 {} -u\n", fixed.display()), Some(Closed::Static)),
            ("#!/usr/bin/env sh\n".to_owned(), None),
            ("no program\n".to_owned(), None),
            (String::new(), None),
        ] {
            let script = written(folder.join("script"), &text);
            assert_eq!(closed(script.as_os_str()), expected, "{text}");
        }
        // A script of itself ends, too.
        let itself = folder.join("itself");
        written(itself.clone(), &format!("#!{}\n", itself.display()));
        assert_eq!(closed(itself.as_os_str()), None);
        assert_eq!((closed(OsStr::new("sh")), closed(OsStr::new("no-such-program"))), (None, None));
    }

    #[test]
    fn a_program_with_the_rights_of_another_user_takes_no_library() {
        let folder = tempfile::tempdir().unwrap();
        let program = built(folder.path(), "rights", &[]);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        let about = program.metadata().unwrap();
        let (user, group) = (about.uid(), about.gid());
        assert!(takes_rights(&about, (user + 1, group)));
        assert!(!takes_rights(&about, (user, group)), "its owner has these rights already");
        if chown(&program, Some(user + 1), None).is_ok() {
            // Changing the owner removes the bit.
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
            assert_eq!(closed(program.as_os_str()), Some(Closed::OwnersRights));
        }
        fs::set_permissions(&program, fs::Permissions::from_mode(0o2755)).unwrap();
        assert!(takes_rights(&program.metadata().unwrap(), (user, group + 1)));
    }

    #[test]
    fn damaged_programs_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let whole = fs::read(built(folder.path(), "whole", &[])).unwrap();
        for length in 0..256 {
            let start = Start::of(&mut io::Cursor::new(&whole[..length]));
            assert!(!matches!(start, Some(Start::Program(Some(_)))), "{length} bytes: {start:?}");
        }
        let mut long = whole.clone();
        // More segments than the file has.
        long[56..58].copy_from_slice(&[0xff, 0xff]);
        assert_eq!(Start::of(&mut io::Cursor::new(&long)), None);
    }
}
