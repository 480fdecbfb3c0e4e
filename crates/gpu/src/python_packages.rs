//! Where does pip install NVIDIA's libraries for PyTorch? For the Python on the path and for the usual prefixes.

use std::path::{Path, PathBuf};

/// The files and folders of this kind that exist, each given relative to `site-packages`.
pub(crate) fn in_python_packages(wanted: &[&str]) -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    prefixes.extend(on_path.iter().filter_map(|bin| bin.parent().map(Path::to_path_buf)));
    let mut found = Vec::new();
    for prefix in prefixes {
        let Ok(libraries) = std::fs::read_dir(prefix.join("lib")) else { continue };
        for library in
            libraries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        {
            for packages in ["site-packages", "dist-packages"] {
                let places = wanted.iter().map(|one| library.path().join(packages).join(one));
                for place in places.filter(|place| place.exists()) {
                    if !found.contains(&place) {
                        found.push(place);
                    }
                }
            }
        }
    }
    found
}
