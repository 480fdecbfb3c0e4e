//! Where is the collector? `http://host:port`, as in OpenTelemetry's own settings.

use std::fmt;

/// What OpenTelemetry's programs use to find their collector.
const VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// A collector on this machine.
const USUAL: &str = "http://127.0.0.1:4318";
/// Where metrics are below an endpoint.
const METRICS: &str = "/v1/metrics";

/// The address that metrics are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// As in the address: with brackets for IPv6.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
}

impl Endpoint {
    /// The one given; else that of the environment; else a collector on this machine.
    pub(super) fn resolve(given: Option<&str>) -> Result<Self, String> {
        let named = |name: &str, text: &str| Self::parse(text).map_err(|why| format!("{name}: {why}"));
        match (given, std::env::var(VARIABLE)) {
            (Some(given), _) => named("--otlp", given),
            (None, Ok(text)) if !text.is_empty() => named(VARIABLE, &text),
            (None, _) => Self::parse(USUAL),
        }
    }

    /// Errors do not repeat the address, which may contain a password.
    fn parse(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "give an address such as http://127.0.0.1:4318";
        if text.starts_with("https://") {
            let why = "https is not supported: send to a collector on this machine with http, and let it forward with https";
            return Err(why.to_owned());
        }
        let rest = text.strip_prefix("http://").ok_or(EXAMPLE)?;
        if rest.contains(['?', '#', '@']) || rest.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err("the address may have a host, a port and a path, and nothing else".to_owned());
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address are in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| EXAMPLE)?),
            _ => (authority, 80),
        };
        if host.is_empty() || (host.contains(':') && !(host.starts_with('[') && host.ends_with(']'))) {
            return Err(EXAMPLE.to_owned());
        }
        let base = path.trim_end_matches('/');
        let base = base.strip_suffix(METRICS).unwrap_or(base);
        Ok(Self { host: host.to_owned(), port, path: format!("{base}{METRICS}") })
    }

    /// For a connection: without brackets.
    pub(super) fn address(&self) -> (&str, u16) {
        (self.host.trim_start_matches('[').trim_end_matches(']'), self.port)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_opentelemetry() {
        for (text, wanted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
            ("http://collector:4318/", "http://collector:4318/v1/metrics"),
            ("http://collector/otlp/", "http://collector:80/otlp/v1/metrics"),
            ("http://[::1]:4318", "http://[::1]:4318/v1/metrics"),
            ("http://[::1]", "http://[::1]:80/v1/metrics"),
            ("http://here:1/v1/metrics", "http://here:1/v1/metrics"),
        ] {
            assert_eq!(Endpoint::parse(text).map(|endpoint| endpoint.to_string()).as_deref(), Ok(wanted));
        }
        assert_eq!(Endpoint::parse("http://[::1]:4318").unwrap().address(), ("::1", 4318));
    }

    #[test]
    fn other_addresses_are_errors_that_repeat_no_password() {
        for text in [
            "127.0.0.1:4318",
            "grpc://here:4317",
            "http://",
            "http://:4318",
            "http://here:port",
            "http://here:99999",
            "http://::1:4318",
            "http://me:secret@here:4318",
            "http://here:4318/?token=secret",
            "http://here:4318/a\r\nX: secret",
            "https://here:4318",
        ] {
            let why = Endpoint::parse(text).unwrap_err();
            assert!(!why.contains("secret"), "{text}: {why}");
        }
        assert!(Endpoint::parse("https://here").unwrap_err().contains("a collector on this machine"));
    }
}
