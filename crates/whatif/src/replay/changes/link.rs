//! `link=NAME`: runs on another link.

use std::fmt;

use busbound_cause::{Model, WorkKind};
use busbound_machine::{LinkFacts, Machine};

use super::edit::copy_ns;
use super::{About, Declared, Made, NO_SUCH_CHANGE, Terms};

/// A link by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherLink {
    name: String,
    link: Box<LinkFacts>,
}

impl Declared for OtherLink {
    const ABOUT: About = About {
        name: "link",
        spelling: "link=NAME",
        help: "run on another link (pcie4x16, h100-pcie, or a rate in GB/s)",
        doing: "using a faster link",
        effort: "use another machine or slot",
        precondition: "the link is the only difference",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        let name = value.ok_or(NO_SUCH_CHANGE)?;
        let machine = Machine::named(name).map_err(|_| "not a known link, GPU or rate")?;
        Ok(Self { name: name.to_owned(), link: Box::new(machine.link_of(None)) })
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        for work in graph.work.iter_mut().filter(|work| work.kind.bus().is_some() && !work.dropped) {
            let WorkKind::Copy { direction, pageable, bytes } = work.kind else { continue };
            let at = |link: &LinkFacts| copy_ns(bytes, direction, pageable, link);
            let (before, after) = (at(terms.link), at(&self.link));
            if before > 0.0 {
                work.alone *= after / before * terms.assumed.copies;
                made.changed += 1;
            }
        }
        made
    }
}

impl fmt::Display for OtherLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", Self::ABOUT.name, self.name)
    }
}
