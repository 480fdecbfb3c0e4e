//! Which host is the first in a list of Slurm's? `gpu[08-11,20],login` is `gpu08`.

/// `None` if the list is empty.
pub(super) fn first_host(list: &str) -> Option<String> {
    let mut host = String::new();
    let mut rest = list.trim();
    while let Some(at) = rest.find(['[', ',']) {
        host.push_str(&rest[..at]);
        if rest[at..].starts_with(',') {
            return Some(host).filter(|host| !host.is_empty());
        }
        // Of the ranges in brackets, the start of the first. Zeros in front are part of the name.
        let (ranges, after) = rest[at + 1..].split_once(']')?;
        host.push_str(ranges.split(['-', ',']).next()?);
        rest = after;
    }
    host.push_str(rest);
    Some(host).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_host_of_a_list_has_its_zeros_and_all_its_parts() {
        for (list, first) in [
            ("gpu[08-11,20],login", Some("gpu08")),
            ("node7", Some("node7")),
            ("node7,node9", Some("node7")),
            ("rack[2,4]-node[001-016].cluster,x", Some("rack2-node001.cluster")),
            ("a[3]", Some("a3")),
            ("", None),
            (",b", None),
            ("broken[1-", None),
        ] {
            assert_eq!(first_host(list).as_deref(), first, "{list}");
        }
    }
}
