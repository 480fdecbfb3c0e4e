//! Which files may a client read? Those below the roots, whatever it calls them: `..`, links and absolute paths included.
//!
//! A path outside is refused with the same words whether something is there or not. Nothing outside the roots is opened, and
//! apart from following links that lie inside a root, nothing outside is looked at.

use std::path::{Component, Path, PathBuf};

use busbound::{Input, resolve_inputs};

use crate::failure::Failure;

/// The directories that are served.
#[derive(Debug)]
pub(super) struct Roots {
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    /// As the user named it, made absolute.
    given: PathBuf,
    /// Without links.
    real: PathBuf,
}

/// A file or directory below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inside {
    pub(super) real: PathBuf,
    /// How answers call it: relative to its root.
    pub(super) name: String,
}

impl Roots {
    /// # Errors
    /// If one of them is not a directory.
    pub(super) fn of(given: &[PathBuf]) -> Result<Self, Failure> {
        let here = [PathBuf::from(".")];
        let given = if given.is_empty() { &here } else { given };
        let root = |path: &PathBuf| {
            let real = path.canonicalize().map_err(Failure::unreadable_at(path))?;
            if !real.is_dir() {
                return Err(Failure::usage(format!("--root {} is not a directory", path.display())));
            }
            let given = std::path::absolute(path).map_err(Failure::unreadable_at(path))?;
            Ok(Root { given, real })
        };
        Ok(Self { roots: given.iter().map(root).collect::<Result<_, _>>()? })
    }

    /// For the log.
    pub(super) fn describe(&self) -> String {
        let names: Vec<String> = self.roots.iter().map(|root| root.real.display().to_string()).collect();
        names.join(", ")
    }

    /// The trace files, each once, that a client's paths stand for. A directory stands for all traces in it, a pattern for the files
    /// that match.
    ///
    /// # Errors
    /// If a path is outside the roots or stands for nothing, as a sentence.
    pub(super) fn files(&self, paths: &[&str]) -> Result<Vec<Inside>, String> {
        let mut files = Vec::new();
        for text in paths {
            let start = files.len();
            let inside = match self.path(text) {
                // A file name may contain the characters of a pattern.
                Err(_) if is_pattern(text) => self.pattern(text)?,
                other => other?.real,
            };
            // A pattern without matches says the same as one whose matches are all outside.
            let found = resolve_inputs(&[inside]).map(|found| found.list).unwrap_or_default();
            for input in found {
                // A link in a directory may lead out of it.
                if let Input::File(path) = input
                    && let Some(inside) = self.inside(&path)
                    && !files.contains(&inside)
                {
                    files.push(inside);
                }
            }
            if files.len() == start {
                return Err(stands_for_nothing(text));
            }
        }
        Ok(files)
    }

    /// One file or directory.
    ///
    /// # Errors
    /// If it is outside the roots or does not exist, as a sentence.
    pub(super) fn path(&self, text: &str) -> Result<Inside, String> {
        let path = checked(text)?;
        let mut missing = false;
        for root in &self.roots {
            let Some(relative) = root.relative(path) else { continue };
            let Some(real) = self.walk(root, relative) else { continue };
            match self.inside(&real) {
                Some(inside) => return Ok(inside),
                None => missing = true,
            }
        }
        Err(if missing { format!("{text} does not exist") } else { outside(text) })
    }

    /// A pattern below a root; its matches still have to be checked.
    fn pattern(&self, text: &str) -> Result<PathBuf, String> {
        let path = checked(text)?;
        // What comes before the first pattern must be inside; a pattern must not lead out again.
        let is_plain = |part: &Component<'_>| !is_pattern(&part.as_os_str().to_string_lossy());
        let head: PathBuf = path.components().take_while(is_plain).collect();
        let tail: PathBuf = path.components().skip_while(is_plain).collect();
        if tail.components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(outside(text));
        }
        let head = if head.as_os_str().is_empty() { Path::new(".") } else { &head };
        let head = self.path(&head.to_string_lossy())?;
        // Characters of the root itself are not part of the pattern.
        let escaped = glob::Pattern::escape(head.real.to_str().ok_or_else(|| stands_for_nothing(text))?);
        Ok(Path::new(&escaped).join(tail))
    }

    /// The path without links, if no part of it leaves the roots; it need not exist.
    fn walk(&self, root: &Root, relative: &Path) -> Option<PathBuf> {
        let mut at = root.real.clone();
        for part in relative.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    at.pop();
                }
                Component::Normal(name) => {
                    at.push(name);
                    // A link to nothing gets the same answer as a link to something outside.
                    at = match at.canonicalize() {
                        Ok(real) => real,
                        Err(_) if at.is_symlink() => return None,
                        Err(_) => at,
                    };
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
            if !self.contain(&at) {
                return None;
            }
        }
        Some(at)
    }

    fn contain(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(&root.real))
    }

    /// A path that exists, if it is below a root after following links.
    pub(super) fn inside(&self, path: &Path) -> Option<Inside> {
        let real = path.canonicalize().ok()?;
        let root = self.roots.iter().find(|root| real.starts_with(&root.real))?;
        let relative = real.strip_prefix(&root.real).ok()?;
        let name = match (relative.as_os_str().is_empty(), self.roots.len()) {
            (true, _) => ".".to_owned(),
            (false, 1) => relative.display().to_string(),
            // Two roots may have files of the same name.
            (false, _) => real.display().to_string(),
        };
        Some(Inside { real, name })
    }
}

impl Root {
    /// The path relative to this root; `None` if it is absolute and elsewhere.
    fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        if !path.is_absolute() {
            return Some(path);
        }
        path.strip_prefix(&self.real).or_else(|_| path.strip_prefix(&self.given)).ok()
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Refuses what is no path of a file.
fn checked(text: &str) -> Result<&Path, String> {
    if text.contains("://") {
        return Err(format!("{text} is a URL: this server reads only files below its roots"));
    }
    if text.is_empty() || text == "-" || text.contains('\0') {
        return Err("a path must name a file or a directory".to_owned());
    }
    Ok(Path::new(text))
}

fn stands_for_nothing(text: &str) -> String {
    format!("{text} stands for no trace below the roots")
}

fn outside(text: &str) -> String {
    format!("{text} is outside the directories that this server may read (busbound mcp --root DIR)")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// `root` with a trace, next to `secret`; links from the root to it.
    fn directory() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a[1]")).unwrap();
        fs::create_dir_all(folder.path().join("secret")).unwrap();
        for file in ["root/run.json", "root/a[1]/rank0.json", "secret/run.json"] {
            fs::write(folder.path().join(file), "[]").unwrap();
        }
        symlink("../secret", root.join("out")).unwrap();
        symlink("../secret/run.json", root.join("out.json")).unwrap();
        symlink("../secret/none.json", root.join("dangling.json")).unwrap();
        symlink("run.json", root.join("in.json")).unwrap();
        folder
    }

    #[test]
    fn nothing_outside_a_root_is_read_and_nothing_says_whether_it_exists() {
        let folder = directory();
        let roots = Roots::of(&[folder.path().join("root")]).unwrap();
        let there = folder.path().join("secret/run.json").display().to_string();
        let absent = folder.path().join("secret/none.json").display().to_string();
        for path in [
            "../secret/run.json",
            "../secret/none.json",
            "a[1]/../../secret/run.json",
            "none/../../secret/run.json",
            "out/run.json",
            "out/none.json",
            "out/../root/run.json",
            "out.json",
            "dangling.json",
            &there,
            &absent,
            "/etc/passwd",
            "/etc/none",
            "..",
            "/",
        ] {
            let why = roots.path(path).unwrap_err();
            assert_eq!(why, outside(path));
        }
        for path in ["", "-", "run.json\0", "s3://bucket/run.json", "file:///etc/passwd"] {
            assert!(roots.path(path).is_err(), "{path}");
        }
        for pattern in ["../secret/*.json", "*/../../secret/run.json", "/etc/*", "out/*", "o*/run.json"] {
            assert!(roots.files(&[pattern]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn what_is_inside_is_found_by_every_name() {
        let folder = directory();
        let given = folder.path().join("root");
        let roots = Roots::of(std::slice::from_ref(&given)).unwrap();
        let absolute = given.join("run.json").display().to_string();
        for path in ["run.json", "./run.json", "a[1]/../run.json", "in.json", "none/../run.json", &absolute] {
            assert_eq!(roots.path(path).unwrap().name, "run.json", "{path}");
        }
        assert_eq!(roots.path("none.json").unwrap_err(), "none.json does not exist");
        // Links that lead out of the directory are left off.
        let names = |paths: &[&str]| -> Vec<String> {
            roots.files(paths).unwrap().into_iter().map(|file| file.name).collect()
        };
        assert_eq!(names(&["."]), ["run.json", "a[1]/rank0.json"]);
        assert_eq!(names(&["*.json"]), ["run.json"]);
        assert_eq!(names(&["a[[]1]/rank*.json"]), ["a[1]/rank0.json"]);
    }
}
