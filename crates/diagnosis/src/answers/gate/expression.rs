//! What does a requirement say? `step_p50 <= 1.05 * baseline`.
//!
//! ```text
//! requirement = sum, ("<" | "<=" | ">" | ">=" | "==" | "!="), sum
//! sum         = product, { ("+" | "-"), product }
//! product     = factor, { ("*" | "/"), factor }
//! factor      = number, ["%"] | figure | "baseline" | "baseline", ".", figure | "(", sum, ")" | "-", factor
//! ```
//!
//! `baseline` alone is the baseline's value of the first figure in the requirement.

use super::figure::GateFigure;
use crate::per_step::PerStep;

/// A parsed requirement.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// As the user wrote it.
    pub text: String,
    left: Expression,
    comparison: Comparison,
    right: Expression,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

#[derive(Debug, Clone)]
enum Expression {
    Number(f64),
    Figure(GateFigure),
    /// Without a name, that of the first figure in the requirement.
    Baseline(Option<GateFigure>),
    Of(Box<Self>, char, Box<Self>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequirementError {
    #[error("unknown figure {name:?} in {text:?}; {hint}")]
    UnknownFigure { text: String, name: String, hint: String },
    #[error("cannot parse {text:?} at {rest:?}: write FIGURE < LIMIT, e.g. exposed_copy_ms < 5")]
    Syntax { text: String, rest: String },
    #[error("{text:?} uses the baseline but names no figure")]
    BaselineOfNothing { text: String },
}

/// Values of figures in one run and in its baseline.
pub(super) trait Values {
    fn figure(&self, figure: &GateFigure) -> Option<f64>;
    fn baseline(&self, figure: &GateFigure) -> Option<f64>;
}

/// Both sides of a requirement, and whether it is met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) is_met: bool,
}

impl Requirement {
    /// # Errors
    /// If it cannot be parsed or names an unknown figure.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        Self::parse_with(text, &[])
    }

    /// As [`Requirement::parse`], with the figures per second that `per_step` makes available.
    ///
    /// # Errors
    /// If it cannot be parsed or names an unknown figure.
    pub fn parse_with(text: &str, per_step: &[PerStep]) -> Result<Self, RequirementError> {
        let mut reader = Reader { text, rest: text, per_step, first: None, bare_baselines: false };
        let left = reader.sum()?;
        let comparison = reader.comparison()?;
        let right = reader.sum()?;
        if !reader.rest.trim().is_empty() {
            return Err(reader.wrong());
        }
        let mut requirement = Self { text: text.trim().to_owned(), left, comparison, right };
        if reader.bare_baselines {
            let first = reader.first.ok_or(RequirementError::BaselineOfNothing { text: text.to_owned() })?;
            requirement.left.name_baseline(&first);
            requirement.right.name_baseline(&first);
        }
        Ok(requirement)
    }

    pub fn needs_baseline(&self) -> bool {
        self.left.needs_baseline() || self.right.needs_baseline()
    }

    /// The figures that it needs.
    pub(super) fn figures(&self) -> Vec<&GateFigure> {
        let mut list = Vec::new();
        self.left.figures(&mut list);
        self.right.figures(&mut list);
        list
    }

    /// How its two sides are compared, e.g. `<=`.
    pub(super) fn operator(&self) -> &'static str {
        self.comparison.symbol()
    }

    /// `None` if the run or the baseline does not have a figure, or after a division by zero.
    pub(super) fn decide(&self, values: &impl Values) -> Option<Outcome> {
        let finite = |value: f64| value.is_finite().then_some(value);
        let (left, right) = (finite(self.left.value(values)?)?, finite(self.right.value(values)?)?);
        let is_met = match self.comparison {
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
        };
        Some(Outcome { left, right, is_met })
    }
}

impl Comparison {
    /// Longer symbols come before those that begin them.
    const ALL: [Self; 6] =
        [Self::LessOrEqual, Self::GreaterOrEqual, Self::Equal, Self::NotEqual, Self::Less, Self::Greater];

    fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}

impl Expression {
    fn value(&self, values: &impl Values) -> Option<f64> {
        Some(match self {
            Self::Number(number) => *number,
            Self::Figure(figure) => values.figure(figure)?,
            Self::Baseline(figure) => values.baseline(figure.as_ref()?)?,
            Self::Of(a, operator, b) => {
                let (a, b) = (a.value(values)?, b.value(values)?);
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    _ => a / b,
                }
            }
        })
    }

    fn needs_baseline(&self) -> bool {
        match self {
            Self::Baseline(_) => true,
            Self::Of(a, _, b) => a.needs_baseline() || b.needs_baseline(),
            Self::Number(_) | Self::Figure(_) => false,
        }
    }

    fn figures<'e>(&'e self, list: &mut Vec<&'e GateFigure>) {
        match self {
            Self::Figure(figure) | Self::Baseline(Some(figure)) => list.push(figure),
            Self::Of(a, _, b) => {
                a.figures(list);
                b.figures(list);
            }
            Self::Number(_) | Self::Baseline(None) => {}
        }
    }

    fn name_baseline(&mut self, figure: &GateFigure) {
        match self {
            Self::Baseline(named) => {
                named.get_or_insert_with(|| figure.clone());
            }
            Self::Of(a, _, b) => {
                a.name_baseline(figure);
                b.name_baseline(figure);
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
    per_step: &'a [PerStep],
    first: Option<GateFigure>,
    bare_baselines: bool,
}

impl<'a> Reader<'a> {
    fn wrong(&self) -> RequirementError {
        RequirementError::Syntax { text: self.text.to_owned(), rest: self.rest.trim().to_owned() }
    }

    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn comparison(&mut self) -> Result<Comparison, RequirementError> {
        let found = Comparison::ALL.into_iter().find(|comparison| self.take(comparison.symbol()));
        found.ok_or_else(|| self.wrong())
    }

    fn sum(&mut self) -> Result<Expression, RequirementError> {
        self.chain(['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expression, RequirementError> {
        self.chain(['*', '/'], |reader| reader.factor(0))
    }

    fn chain(
        &mut self,
        operators: [char; 2],
        part: impl Fn(&mut Self) -> Result<Expression, RequirementError>,
    ) -> Result<Expression, RequirementError> {
        let mut left = part(self)?;
        while let Some(operator) =
            operators.into_iter().find(|operator| self.take(operator.encode_utf8(&mut [0; 4])))
        {
            left = Expression::Of(Box::new(left), operator, Box::new(part(self)?));
        }
        Ok(left)
    }

    fn factor(&mut self, depth: usize) -> Result<Expression, RequirementError> {
        if depth > 64 {
            return Err(self.wrong());
        }
        if self.take("(") {
            let inner = self.nested_sum(depth)?;
            return if self.take(")") { Ok(inner) } else { Err(self.wrong()) };
        }
        if self.take("-") {
            let inner = self.factor(depth + 1)?;
            return Ok(Expression::Of(Box::new(Expression::Number(0.0)), '-', Box::new(inner)));
        }
        if self.rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let before = self.rest;
            let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
            let Ok(number) = digits.parse::<f64>() else {
                self.rest = before;
                return Err(self.wrong());
            };
            let scale = if self.take("%") { 0.01 } else { self.unit() };
            return Ok(Expression::Number(number * scale));
        }
        let before = self.rest;
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        match name {
            "" => {
                self.rest = before;
                Err(self.wrong())
            }
            "baseline" if self.take(".") => {
                let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                Ok(Expression::Baseline(Some(self.figure(name)?)))
            }
            "baseline" => {
                self.bare_baselines = true;
                Ok(Expression::Baseline(None))
            }
            name => {
                let figure = self.figure(name)?;
                self.first.get_or_insert_with(|| figure.clone());
                Ok(Expression::Figure(figure))
            }
        }
    }

    /// A unit after a number, if it is one of the figure before: `step_p50 < 1.5 s`. Returns what to multiply by.
    fn unit(&mut self) -> f64 {
        const SECONDS: [(&str, f64); 4] = [("ms", 1e-3), ("µs", 1e-6), ("us", 1e-6), ("s", 1.0)];
        let Some(own) = self.first.as_ref().map(GateFigure::symbol).filter(|own| !own.is_empty()) else {
            return 1.0;
        };
        let Some((_, own_seconds)) = SECONDS.into_iter().find(|(unit, _)| *unit == own) else {
            let _ = self.take(own);
            return 1.0;
        };
        let taken = SECONDS.into_iter().find(|(unit, _)| self.take(unit));
        taken.map_or(1.0, |(_, seconds)| seconds / own_seconds)
    }

    fn nested_sum(&mut self, depth: usize) -> Result<Expression, RequirementError> {
        // The depth of nested parentheses is counted in the factors inside them.
        self.chain(['+', '-'], |reader| reader.chain(['*', '/'], |reader| reader.factor(depth + 1)))
    }

    fn figure(&self, name: &str) -> Result<GateFigure, RequirementError> {
        GateFigure::named(name, self.per_step).ok_or_else(|| RequirementError::UnknownFigure {
            text: self.text.to_owned(),
            name: name.to_owned(),
            hint: GateFigure::hint(name, self.per_step),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::FigureId;

    struct Fixed;

    impl Values for Fixed {
        fn figure(&self, figure: &GateFigure) -> Option<f64> {
            match figure {
                GateFigure::Catalog(FigureId::StepP50) => Some(104.0),
                GateFigure::Catalog(FigureId::ExposedCopyMs) => Some(3.0),
                GateFigure::PerSecond(name) if name == "tokens_per_s" => Some(1000.0),
                _ => None,
            }
        }

        fn baseline(&self, figure: &GateFigure) -> Option<f64> {
            match figure {
                GateFigure::Catalog(FigureId::StepP50) => Some(100.0),
                GateFigure::Catalog(FigureId::ExposedCopyMs) => Some(1.0),
                GateFigure::PerSecond(name) if name == "tokens_per_s" => Some(1100.0),
                _ => None,
            }
        }
    }

    fn tokens() -> [PerStep; 1] {
        ["tokens=10".parse().unwrap()]
    }

    fn holds(text: &str) -> Option<bool> {
        let parsed = Requirement::parse_with(text, &tokens()).unwrap_or_else(|error| panic!("{error}"));
        parsed.decide(&Fixed).map(|outcome| outcome.is_met)
    }

    #[test]
    fn requirements_mean_what_they_say() {
        for (text, expected) in [
            ("step_p50<=1.05*baseline", Some(true)),
            ("step_p50 <= baseline * 1.03", Some(false)),
            ("step_p50 < baseline + 5", Some(true)),
            ("exposed_copy_ms<5", Some(true)),
            ("step_p50 < 105ms", Some(true)),
            ("step_p50 < 0.1 s", Some(false)),
            ("step_p50 < 0.2s + 1 us", Some(true)),
            ("exposed_copy_ms / step_p50 < 2%", Some(false)),
            ("exposed_copy_ms / step_p50 < 3%", Some(true)),
            ("exposed_copy_ms <= 3 * baseline.exposed_copy_ms", Some(true)),
            ("exposed_copy_ms < baseline.step_p50 - 96", Some(true)),
            ("(step_p50 - exposed_copy_ms) * 2 == 202", Some(true)),
            ("2 + 3 * 4 == 14", Some(true)),
            ("step_p50 > -1", Some(true)),
            ("step_p50 != 104", Some(false)),
            ("tokens_per_s >= 0.9 * baseline", Some(true)),
            ("tokens_per_s >= 95% * baseline", Some(false)),
            ("step_p50 < baseline.tokens_per_s", Some(true)),
            ("overlap_score >= 0.3", None),
            ("1 / (step_p50 - 104) > 3", None),
            ("0 / (step_p50 - 104) != 1", None),
        ] {
            assert_eq!(holds(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_say_where_and_what_to_write() {
        for (text, part) in [
            ("step_p5 < 3", "did you mean step_p50"),
            ("step_50 < 3", "did you mean step_p50"),
            ("Step_P50 < 3", "did you mean step_p50"),
            ("graph_break == 0", "did you mean graph_breaks?"),
            ("step_p50 < baseline.step_p5", "did you mean step_p50"),
            ("token_per_s > 3", "did you mean tokens_per_s?"),
            ("samples_per_s > 3", "add --per-step samples=COUNT"),
            ("idle < 3", "did you mean idle_ms, idle_input_ms or"),
            ("speed < 3", "busbound gate --help lists the figures"),
            ("step_p50 <", "cannot parse"),
            ("step_p50 = 3", "at \"= 3\""),
            ("step_p50 < 3 GB", "at \"GB\""),
            ("", "cannot parse"),
            ("baseline < 3", "no figure"),
            ("step_p50 < 1.2.3", "1.2.3"),
            ("(step_p50 < 3", "cannot parse"),
        ] {
            let error = Requirement::parse_with(text, &tokens()).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[ -~]{0,60}") {
            let _ = Requirement::parse(&text);
        }

        #[test]
        fn nesting_is_bounded(depth in 1usize..3000) {
            let text = format!("{}1{} < 2", "(".repeat(depth), ")".repeat(depth));
            let _ = Requirement::parse(&text);
        }
    }
}
