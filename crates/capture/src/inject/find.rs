//! Which libcupti belongs to this process? The one it has loaded, else the one next to its other CUDA libraries.

use std::fs;
use std::path::{Path, PathBuf};

use super::library::Library;

/// A CUPTI library, and where it was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) library: Library,
    pub(super) place: String,
}

/// Also searches these folders.
///
/// # Errors
/// With a message that lists where it was searched, if it was not found.
pub(super) fn cupti(also: &[PathBuf]) -> Result<Found, String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapped: Vec<&str> = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).collect();
    let is_cupti = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libcupti.so"));
    for path in mapped.iter().filter(|path| is_cupti(path)) {
        if let Some(library) = Library::loaded(path) {
            return Ok(Found { library, place: (*path).to_owned() });
        }
    }
    let mut folders = folders(&mapped);
    folders.extend(also.iter().filter(|folder| folder.is_dir()).cloned());
    // A CUPTI version knows the calls of its own CUDA version: prefer the version of the process, from any folder.
    let own = mapped.iter().find_map(|path| path.rsplit('/').next()?.strip_prefix("libcudart.so."));
    let own = own.and_then(|version| version.split('.').next()).map(|major| format!("libcupti.so.{major}"));
    let any = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"].map(str::to_owned);
    let in_folders = |is_wanted: &dyn Fn(&str) -> bool| {
        let paths = folders.iter().flat_map(|folder| {
            names_in(folder).into_iter().filter(|name| is_wanted(name)).map(|name| folder.join(name))
        });
        paths.map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let of_own = own.iter().flat_map(|own| {
        in_folders(&|name| {
            name.strip_prefix(own.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    });
    let candidates = of_own.chain(own.clone()).chain(in_folders(&|_| true)).chain(any);
    for place in candidates {
        if let Some(library) = Library::load(&place) {
            return Ok(Found { library, place });
        }
    }
    let looked: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(format!(
        "libcupti not found: none is loaded, and none is in {} or on the library path; install CUPTI (pip install nvidia-cuda-cupti) or set CUDA_HOME",
        if looked.is_empty() { "CUDA_HOME".to_owned() } else { looked.join(", ") }
    ))
}

/// Folders next to the loaded CUDA libraries, grouped by version.
fn folders(mapped: &[&str]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |folder: PathBuf| {
        if folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    };
    for path in mapped {
        let path = Path::new(path);
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.starts_with("libcudart") && !name.starts_with("libtorch") && !name.starts_with("libcublas") {
            continue;
        }
        let Some(folder) = path.parent() else { continue };
        add(folder.to_owned());
        // …/site-packages/nvidia/cuda_runtime/lib and …/site-packages/torch/lib are next to nvidia/cuda_cupti/lib,
        // nvidia/cu13/lib.
        for above in folder.ancestors().take(4) {
            for packages in [above.to_owned(), above.join("nvidia")] {
                for package in ["cuda_cupti", "cu13", "cu12"] {
                    add(packages.join(package).join("lib"));
                }
            }
        }
    }
    for home in ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from) {
        for part in ["extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib"] {
            add(home.join(part));
        }
    }
    for part in ["extras/CUPTI/lib64", "lib64"] {
        add(Path::new("/usr/local/cuda").join(part));
    }
    folders
}

/// The libraries in a folder, newest first.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("libcupti.so")).collect();
    names.sort();
    names.reverse();
    names
}
