//! How do processes with one GPU each measure together? [`Launch`] is what the launcher of this process says about it,
//! `meeting` connects all ranks with rank 0 over TCP, and then rank 0 asks and all answer, one line each (`message`):
//! `party` is rank 0's side, `member` is the side of the others. Nothing here uses a GPU: what a rank does when it is asked is a function
//! that runs on a thread of its own, because a call of NCCL may never return when another rank is gone.

mod error;
mod launch;
mod lines;
mod meeting;
mod member;
mod message;
mod nodelist;
mod party;
mod worker;

pub use error::RanksError;
pub use launch::{Launch, LaunchError, Launcher};

pub(crate) use meeting::{attend, gather};
pub(crate) use member::serve;
pub(crate) use message::{Answer, Command, Seated};
pub(crate) use party::Party;
pub(crate) use worker::Asked;
