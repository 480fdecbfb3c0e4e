//! Do files import each other in cycles? Found by the paths in their sources: `crate::…`, `super::…`, `self::…`.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;

type Module = Vec<String>;

/// Import cycles between files, one line each. A parent and its descendants do not count as a cycle.
pub(super) fn cycles(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &Source>> = BTreeMap::new();
    for source in sources {
        if let Some((root, module)) = place(&source.path) {
            crates.entry(root).or_default().insert(module, source);
        }
    }
    crates.values().flat_map(of_crate).collect()
}

/// The root folder of a crate, and the module of a file.
fn place(path: &str) -> Option<(&str, Module)> {
    let at = path.find("/src/")?;
    let (root, rest) = (&path[..at], path[at + 5..].strip_suffix(".rs")?);
    let mut module: Module = rest.split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    Some((root, module))
}

fn of_crate(modules: &BTreeMap<Module, &Source>) -> Vec<String> {
    let names: Vec<&Module> = modules.keys().collect();
    let number: BTreeMap<&Module, usize> = names.iter().enumerate().map(|(i, name)| (*name, i)).collect();
    let edges: Vec<BTreeSet<usize>> = modules
        .iter()
        .map(|(module, source)| {
            let targets = paths(&source.text).into_iter().filter_map(|path| resolve(module, &path, modules));
            let targets = targets.filter(|target| !target.starts_with(module) && !module.starts_with(target));
            targets.map(|target| number[&target]).collect()
        })
        .collect();
    let reach: Vec<BTreeSet<usize>> = (0..names.len()).map(|from| reachable(from, &edges)).collect();
    let mut found = BTreeSet::new();
    for from in 0..names.len() {
        let cycle: Vec<&str> = (0..names.len())
            .filter(|&to| reach[from].contains(&to) && reach[to].contains(&from))
            .map(|to| modules[names[to]].path.as_str())
            .collect();
        if cycle.len() > 1 {
            found.insert(format!("cycle {}", cycle.join(" ")));
        }
    }
    found.into_iter().collect()
}

fn reachable(from: usize, edges: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut next: Vec<usize> = edges[from].iter().copied().collect();
    while let Some(at) = next.pop() {
        if seen.insert(at) {
            next.extend(&edges[at]);
        }
    }
    seen
}

/// The file that a path leads to, if any: the longest prefix of the path that is a module.
fn resolve(from: &Module, path: &[String], modules: &BTreeMap<Module, &Source>) -> Option<Module> {
    let mut base = match path.first()?.as_str() {
        "crate" => Vec::new(),
        _ => from.clone(),
    };
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" | "self" => {}
            "super" => {
                base.pop();
            }
            _ => break,
        }
        rest = after;
    }
    for part in rest {
        base.push(part.clone());
        if !modules.contains_key(&base) {
            base.pop();
            break;
        }
    }
    modules.contains_key(&base).then_some(base)
}

/// Every path that begins with `crate`, `super` or `self`, with groups expanded; imports in tests do not count.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut code = String::new();
    let mut in_tests = false;
    let mut is_test_next = false;
    for line in text.lines() {
        if in_tests {
            in_tests = line != "}";
            continue;
        }
        if is_test_next && line.starts_with("mod ") && line.ends_with('{') {
            in_tests = true;
        }
        is_test_next = line == "#[cfg(test)]";
        let line = line.split("//").next().unwrap_or_default();
        if !in_tests {
            code.push_str(line);
            code.push('\n');
        }
    }
    let mut found = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            // `super::super::x` is one path, which begins at the first `super`.
            if before.is_some_and(|c| {
                c.is_alphanumeric() || c == '_' || c == ':' || c == '(' && code[..at].ends_with("(in ")
            }) {
                continue;
            }
            tree(&code[at..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// One path with its groups: `a::{b, c::{d, e}}`. Returns the rest of the text.
fn tree<'a>(text: &'a str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let depth = prefix.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut inner) = rest.strip_prefix('{') {
            loop {
                inner = tree(inner, prefix, found).trim_start();
                inner = inner.strip_prefix(',').map_or(inner, str::trim_start);
                if let Some(after) = inner.strip_prefix('}') {
                    rest = after;
                    break;
                }
                if inner.is_empty()
                    || !inner.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '*' || c == '{')
                {
                    rest = inner;
                    break;
                }
            }
            break;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        prefix.push(rest[..end].to_owned());
        match rest[end..].strip_prefix("::") {
            Some(after) => rest = after.trim_start(),
            None => {
                found.push(prefix.clone());
                rest = &rest[end..];
                // `as name`, and a star.
                rest = rest.trim_start_matches('*');
                if let Some(after) = rest.trim_start().strip_prefix("as ") {
                    rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
                }
                break;
            }
        }
    }
    prefix.truncate(depth);
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn groups_are_expanded() {
        let found = paths(
            "use crate::{a::{b, c as d}, e::*};\nlet x = super::super::f::g();\npub(in super::super) fn h() {}\n",
        );
        let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
        assert_eq!(found[..3], ["crate::a::b", "crate::a::c", "crate::e::"]);
        assert!(found.contains(&"super::super::f::g".to_owned()), "{found:?}");
    }

    #[test]
    fn a_cycle_is_found_and_parents_do_not_count() {
        let sources = [
            source("crates/x/src/lib.rs", "mod a; mod b; use a::A; use crate::b::c::C;"),
            source("crates/x/src/a.rs", "use crate::b::c::C;"),
            source("crates/x/src/b/mod.rs", "mod c; use self::c::C;"),
            source("crates/x/src/b/c.rs", "use super::B;\nuse crate::a::A;\n"),
            source(
                "crates/x/src/d.rs",
                "use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::e::E;\n}\n",
            ),
            source("crates/x/src/e.rs", "use crate::d::D; // crate::a"),
        ];
        assert_eq!(cycles(&sources), ["cycle crates/x/src/a.rs crates/x/src/b/c.rs"]);
    }
}
