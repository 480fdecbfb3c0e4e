//! On which machine did this rank run? torch.profiler's TensorBoard handler puts the host name into the file name.

/// `node17` of `node17_4242.1700000000000.pt.trace.json.gz`: host, process, time.
pub(crate) fn host_in_name(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let (worker, time) = name.split_once(".pt.trace.json")?.0.rsplit_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, process) = worker.rsplit_once('_')?;
    // Milliseconds or nanoseconds since 1970: at least 13 digits.
    let is_time = is_number(time) && time.len() >= 13;
    (is_time && is_number(process) && !host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_handler_contain_a_host() {
        for (name, host) in [
            ("traces/node17_4242.1700000000000.pt.trace.json.gz", Some("node17")),
            ("gpu-a_b.cluster_7.1700000000000000000.pt.trace.json", Some("gpu-a_b.cluster")),
            ("rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", None),
            ("worker0.1623143089861.pt.trace.json.gz", None),
            ("sampled_rank-17.json.gz", None),
        ] {
            assert_eq!(host_in_name(name), host, "{name}");
        }
    }
}
