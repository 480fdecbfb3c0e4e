//! Which settings does the text of a `busbound.toml` hold? Every error has the line.

use std::path::{Path, PathBuf};

use busbound::diagnosis::StageChoice;
use regex_lite::Regex;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;
use crate::args::values::parse_milliseconds;
use busbound::machine::spelling::did_you_mean;

const KEYS: [&str; 6] = ["machine", "steps", "warmup", "wall", "stages", "gate"];
const GATE_KEYS: [&str; 2] = ["require", "baseline"];

type Table<'t> = DeTable<'t>;
type Value<'t> = Spanned<DeValue<'t>>;

/// The settings, or a sentence with the file and the line.
pub(super) fn parse(text: &str, path: &Path) -> Result<Config, String> {
    let file = File { text, path };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        file.wrong(at, error.message())
    })?;
    let mut config = Config { path: path.to_owned(), ..Config::default() };
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "machine" => config.machine = Some(file.machine(value)?),
            "steps" => config.steps = Some(file.regex("steps", value)?),
            "warmup" => config.warmup = Some(file.whole_number("warmup", value)?),
            "wall" => config.wall = Some(file.wall(value)?),
            "stages" => config.stages = file.stages(value)?,
            "gate" => file.gate(value, &mut config)?,
            other => return Err(file.unknown(other, key.span().start, &KEYS)),
        }
    }
    Ok(config)
}

/// The text, to say where something is wrong.
struct File<'f> {
    text: &'f str,
    path: &'f Path,
}

impl File<'_> {
    fn wrong(&self, at: usize, why: &str) -> String {
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        format!("{}:{line}: {why}", self.path.display())
    }

    fn wrong_value(&self, key: &str, value: &Value<'_>, example: &str) -> String {
        self.wrong(value.span().start, &format!("{key} has a value of the wrong type; write e.g. {example}"))
    }

    fn unknown(&self, key: &str, at: usize, keys: &[&str]) -> String {
        let hint = did_you_mean(key, keys.iter().copied(), 1)
            .unwrap_or_else(|| format!("the keys here are {}", keys.join(", ")));
        self.wrong(at, &format!("unknown key {key:?}; {hint}"))
    }

    fn text_of<'v>(&self, key: &str, value: &'v Value<'_>, example: &str) -> Result<&'v str, String> {
        value.get_ref().as_str().ok_or_else(|| self.wrong_value(key, value, example))
    }

    fn table_of<'v, 't>(
        &self,
        key: &str,
        value: &'v Value<'t>,
        example: &str,
    ) -> Result<&'v Table<'t>, String> {
        value.get_ref().as_table().ok_or_else(|| self.wrong_value(key, value, example))
    }

    /// A path in the file is relative to the file's directory.
    fn relative(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }

    fn machine(&self, value: &Value<'_>) -> Result<String, String> {
        // `machine = 63` is a rate, as on the command line.
        match value.get_ref() {
            DeValue::Integer(number) => return Ok(number.as_str().to_owned()),
            DeValue::Float(number) => return Ok(number.as_str().to_owned()),
            _ => {}
        }
        let name = self.text_of("machine", value, "machine = \"h100-pcie\"")?;
        let is_file = name.ends_with(".json");
        Ok(if is_file { self.relative(name).display().to_string() } else { name.to_owned() })
    }

    fn regex(&self, key: &str, value: &Value<'_>) -> Result<Regex, String> {
        let text = self.text_of(key, value, &format!("{key} = \"^step$\""))?;
        Regex::new(text).map_err(|error| self.wrong(value.span().start, &format!("{key}: {error}")))
    }

    fn whole_number(&self, key: &str, value: &Value<'_>) -> Result<usize, String> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong_value(key, value, &format!("{key} = 2")))
    }

    /// `wall = "31.8ms"`; a number is milliseconds, as on the command line.
    fn wall(&self, value: &Value<'_>) -> Result<f64, String> {
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => self.text_of("wall", value, "wall = \"31.8ms\"")?,
        };
        parse_milliseconds(text).map_err(|why| self.wrong(value.span().start, &format!("wall: {why}")))
    }

    fn stages(&self, value: &Value<'_>) -> Result<Vec<StageChoice>, String> {
        let table = self.table_of("stages", value, "[stages] load = \"^load$\"")?;
        let mut stages: Vec<(usize, StageChoice)> = Vec::new();
        for (name, expression) in table {
            let name_text = name.get_ref().to_string();
            let matching = self.regex(&name_text, expression)?;
            stages.push((name.span().start, StageChoice { name: name_text, matching }));
        }
        if stages.len() == 1 {
            return Err(
                self.wrong(value.span().start, "one stage is no pipeline: [stages] takes two or more")
            );
        }
        // In the order of the file, which is the order of the pipeline.
        stages.sort_by_key(|(at, _)| *at);
        Ok(stages.into_iter().map(|(_, stage)| stage).collect())
    }

    fn gate(&self, value: &Value<'_>, config: &mut Config) -> Result<(), String> {
        const REQUIRE: &str = "require = [\"exposed_copy_ms < 5\"]";
        for (key, value) in self.table_of("gate", value, &format!("[gate] {REQUIRE}"))? {
            match key.get_ref().as_ref() {
                "require" => {
                    let list = value
                        .get_ref()
                        .as_array()
                        .ok_or_else(|| self.wrong_value("require", value, REQUIRE))?;
                    for item in list {
                        config.require.push(self.text_of("require", item, REQUIRE)?.to_owned());
                    }
                }
                "baseline" => {
                    let name = self.text_of("baseline", value, "baseline = \"base.json\"")?;
                    config.baseline = Some(self.relative(name));
                }
                other => return Err(self.unknown(other, key.span().start, &GATE_KEYS)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        parse(text, Path::new("project/busbound.toml"))
    }

    #[test]
    fn every_key_is_read() {
        let config = parsed(
            "machine = \"machine.json\"\nsteps = '^step'\nwarmup = 2\nwall = 31.8\n\n[stages]\nload = \"^load$\"\ncompute = \"^compute$\"\n\n\
             [gate]\nrequire = [\"findings == 0\", \"idle_share < 10%\"]\nbaseline = \"base.json\"\n",
        )
        .unwrap();
        assert_eq!(config.machine.as_deref(), Some("project/machine.json"));
        assert_eq!(config.steps.map(|steps| steps.to_string()).as_deref(), Some("^step"));
        assert_eq!((config.warmup, config.wall), (Some(2), Some(31.8)));
        let stages: Vec<&str> = config.stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(stages, ["load", "compute"]);
        assert_eq!(config.require, ["findings == 0", "idle_share < 10%"]);
        assert_eq!(config.baseline.as_deref(), Some(Path::new("project/base.json")));
        assert_eq!(parsed("machine = 63").unwrap().machine.as_deref(), Some("63"));
        assert!(parsed("").is_ok());
    }

    #[test]
    fn errors_have_the_line_and_a_suggestion() {
        for (text, wanted) in [
            (
                "warmup = 1\nmachin = \"h200\"",
                "busbound.toml:2: unknown key \"machin\"; did you mean machine?",
            ),
            (
                "zzz = 1",
                "busbound.toml:1: unknown key \"zzz\"; the keys here are machine, steps, warmup, wall, stages, gate",
            ),
            ("[gate]\n\nrequires = []", "busbound.toml:3: unknown key \"requires\"; did you mean require?"),
            (
                "warmup = \"two\"",
                "busbound.toml:1: warmup has a value of the wrong type; write e.g. warmup = 2",
            ),
            ("wall = \"soon\"", "busbound.toml:1: wall: give a time above zero such as 31.8ms"),
            ("warmup = -1", "busbound.toml:1: warmup has a value of the wrong type"),
            ("\nsteps = \"(\"", "busbound.toml:2: steps: "),
            ("[stages]\nload = \"x\"", "busbound.toml:1: one stage is no pipeline"),
            ("machine = \"h200\"\n]", "busbound.toml:2: "),
            ("[gate]\nrequire = \"findings == 0\"", "busbound.toml:2: require has a value of the wrong type"),
        ] {
            let why = parsed(text).unwrap_err();
            assert!(why.starts_with(&format!("project/{wanted}")), "{text}: {why}");
        }
    }
}
