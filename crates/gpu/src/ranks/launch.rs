//! Which rank is this process, of how many, and where is rank 0? From the variables that torchrun, mpirun and srun set.

use std::fmt;

use super::nodelist::first_host;

/// What started the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Launcher {
    Torchrun,
    OpenMpi,
    /// MPICH, Intel MPI and others with the process management interface.
    Pmi,
    Slurm,
}

/// One process of several that measure together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub launcher: Launcher,
    pub rank: u32,
    /// The number of processes.
    pub size: u32,
    /// The number of this process on its node, if the launcher says it.
    pub local_rank: Option<u32>,
    /// Where rank 0 is: a name or a number.
    pub address: String,
    /// Where rank 0 listens.
    pub port: u16,
    /// Whether all processes are on one node: then nobody else needs to reach rank 0.
    pub is_one_node: bool,
    /// What only the processes of this job know, as far as the launcher gives them something. No white space.
    pub(super) job: String,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    #[error("{name} is {value:?}, which is not a number")]
    NotANumber { name: &'static str, value: String },
    #[error("rank {rank} of {size} processes is impossible: ranks are numbered from 0 ({launcher})")]
    NoSuchRank { rank: u32, size: u32, launcher: Launcher },
    #[error(
        "{launcher} does not say where rank 0 is: set MASTER_ADDR to its host for all processes (such as mpirun -x MASTER_ADDR=HOST)"
    )]
    NoAddress { launcher: Launcher },
}

/// The names of a launcher's variables; where there are several, the first that is set counts.
struct Names {
    launcher: Launcher,
    rank: &'static str,
    size: &'static str,
    local_rank: &'static [&'static str],
    local_size: &'static [&'static str],
    /// Together they are different for each job.
    job: &'static [&'static str],
}

/// Those that start processes within the allocation of another one come first.
const LAUNCHERS: [Names; 4] = [
    Names {
        launcher: Launcher::Torchrun,
        rank: "RANK",
        size: "WORLD_SIZE",
        local_rank: &["LOCAL_RANK"],
        local_size: &["LOCAL_WORLD_SIZE"],
        job: &["TORCHELASTIC_RUN_ID"],
    },
    Names {
        launcher: Launcher::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
    },
    Names {
        launcher: Launcher::Pmi,
        rank: "PMI_RANK",
        size: "PMI_SIZE",
        local_rank: &["MPI_LOCALRANKID", "PMI_LOCAL_RANK"],
        local_size: &["MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"],
        job: &["PBS_JOBID", "SLURM_JOB_ID"],
    },
    // Not SLURM_NTASKS: a batch script has it too, and is one process.
    Names {
        launcher: Launcher::Slurm,
        rank: "SLURM_PROCID",
        size: "SLURM_STEP_NUM_TASKS",
        local_rank: &["SLURM_LOCALID"],
        local_size: &[],
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID"],
    },
];

/// Set by the user where the launcher says nothing that is different for each job.
const OWN_JOB: &str = "BUSBOUND_JOB";
/// One above what PyTorch takes if nothing is said.
const USUAL_PORT: u16 = 29_501;
/// Ports that are chosen by the number of a Slurm job: below those that systems hand out.
const SLURM_PORTS: std::ops::Range<u64> = 10_000..30_000;

/// Values of variables; empty ones count as not set.
struct Variables<'a>(&'a dyn Fn(&str) -> Option<String>);

impl Launch {
    /// What the launcher of this process says; `None` if it is on its own. `port` is the user's choice.
    ///
    /// # Errors
    /// If the variables contradict each other, or if rank 0 is nowhere to be found.
    pub fn of(
        variable: &dyn Fn(&str) -> Option<String>,
        port: Option<u16>,
    ) -> Result<Option<Self>, LaunchError> {
        let variables = Variables(variable);
        let set = |name| variables.text(name).is_some();
        let Some(names) = LAUNCHERS.iter().find(|names| set(names.rank) && set(names.size)) else {
            return Ok(None);
        };
        let (rank, size) = (variables.number(names.rank)?, variables.number(names.size)?);
        let (rank, size) = (rank.unwrap_or_default(), size.unwrap_or_default());
        if size == 1 {
            return Ok(None);
        }
        let launcher = names.launcher;
        if rank >= size {
            return Err(LaunchError::NoSuchRank { rank, size, launcher });
        }
        let is_one_node = variables.first_number(names.local_size)? == Some(size);
        Ok(Some(Self {
            launcher,
            rank,
            size,
            local_rank: variables.first_number(names.local_rank)?,
            address: variables.address(is_one_node).ok_or(LaunchError::NoAddress { launcher })?,
            port: match port {
                Some(port) => port,
                None => variables.port(launcher)?,
            },
            is_one_node,
            job: variables.job(names),
        }))
    }
}

impl Variables<'_> {
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    fn number(&self, name: &'static str) -> Result<Option<u32>, LaunchError> {
        let Some(value) = self.text(name) else { return Ok(None) };
        value.trim().parse().map(Some).map_err(|_| LaunchError::NotANumber { name, value })
    }

    fn first_number(&self, names: &[&'static str]) -> Result<Option<u32>, LaunchError> {
        names.iter().find(|name| self.text(name).is_some()).map_or(Ok(None), |name| self.number(name))
    }

    /// On one node, rank 0 is reached without a name, which may not resolve there.
    fn address(&self, is_one_node: bool) -> Option<String> {
        if is_one_node {
            return Some("127.0.0.1".to_owned());
        }
        let listed = || ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"].iter().find_map(|name| self.text(name));
        self.text("MASTER_ADDR").or_else(|| first_host(&listed()?))
    }

    /// The port above the one that torchrun's own store listens on.
    fn port(&self, launcher: Launcher) -> Result<u16, LaunchError> {
        const NAME: &str = "MASTER_PORT";
        if let Some(value) = self.text(NAME) {
            let port: u16 =
                value.trim().parse().map_err(|_| LaunchError::NotANumber { name: NAME, value })?;
            return Ok(port.checked_add(1).unwrap_or(port - 1));
        }
        let job = self.text("SLURM_JOB_ID").and_then(|job| job.trim().parse::<u64>().ok());
        Ok(match (launcher, job) {
            // Jobs that share a node do not meet.
            (Launcher::Slurm, Some(job)) => {
                (SLURM_PORTS.start + job % (SLURM_PORTS.end - SLURM_PORTS.start)) as u16
            }
            _ => USUAL_PORT,
        })
    }

    fn job(&self, names: &Names) -> String {
        let parts = std::iter::once(&OWN_JOB).chain(names.job).filter_map(|name| self.text(name));
        let job = parts.collect::<Vec<_>>().join("/");
        // One word of a line.
        let word: String = job.chars().filter(|one| !one.is_whitespace() && !one.is_control()).collect();
        if word.is_empty() { "none".to_owned() } else { word.chars().take(200).collect() }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torchrun => "torchrun, or RANK and WORLD_SIZE",
            Self::OpenMpi => "Open MPI's mpirun",
            Self::Pmi => "mpiexec",
            Self::Slurm => "srun",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Result<Option<Launch>, LaunchError> {
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Launch::of(&variable, None)
    }

    #[test]
    fn torchrun_says_everything_and_its_own_port_is_left_alone() {
        let set = [
            ("RANK", "9"),
            ("WORLD_SIZE", "16"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "8"),
            ("MASTER_ADDR", "node0"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_RUN_ID", "job 7"),
            // The allocation that torchrun runs in.
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NUM_TASKS", "2"),
        ];
        let launch = of(&set).unwrap().unwrap();
        assert_eq!((launch.launcher, launch.rank, launch.size), (Launcher::Torchrun, 9, 16));
        assert_eq!((launch.local_rank, launch.is_one_node), (Some(1), false));
        assert_eq!((launch.address.as_str(), launch.port, launch.job.as_str()), ("node0", 29_501, "job7"));
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        assert_eq!(Launch::of(&variable, Some(7000)).unwrap().unwrap().port, 7000);
    }

    #[test]
    fn srun_needs_no_address_and_its_jobs_do_not_share_a_port() {
        let set = [
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_NUM_TASKS", "8"),
            ("SLURM_LOCALID", "3"),
            ("SLURM_STEP_NODELIST", "gpu[08-09]"),
            ("SLURM_JOB_ID", "4200017"),
            ("SLURM_STEP_ID", "2"),
        ];
        let launch = of(&set).unwrap().unwrap();
        assert_eq!((launch.launcher, launch.rank, launch.local_rank), (Launcher::Slurm, 3, Some(3)));
        assert_eq!(
            (launch.address.as_str(), launch.port, launch.job.as_str()),
            ("gpu08", 10_017, "4200017/2")
        );
    }

    /// It would have waited for seven processes that nobody started.
    #[test]
    fn a_batch_script_and_a_single_process_are_on_their_own() {
        let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8"), ("SLURM_JOB_NODELIST", "gpu1")];
        assert_eq!(of(&batch), Ok(None));
        assert_eq!(of(&[("RANK", "0"), ("WORLD_SIZE", "1")]), Ok(None));
        assert_eq!(of(&[("RANK", "3")]), Ok(None));
        assert_eq!(of(&[("RANK", "3"), ("WORLD_SIZE", "")]), Ok(None));
    }

    #[test]
    fn mpirun_on_one_node_needs_no_address_and_on_several_it_does() {
        let of_open_mpi = |local_size| {
            of(&[
                ("OMPI_COMM_WORLD_RANK", "1"),
                ("OMPI_COMM_WORLD_SIZE", "4"),
                ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
                ("OMPI_COMM_WORLD_LOCAL_SIZE", local_size),
            ])
        };
        let one = of_open_mpi("4").unwrap().unwrap();
        assert_eq!((one.address.as_str(), one.port, one.job.as_str()), ("127.0.0.1", USUAL_PORT, "none"));
        assert_eq!(of_open_mpi("2"), Err(LaunchError::NoAddress { launcher: Launcher::OpenMpi }));
        let mpich =
            of(&[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("MPI_LOCALRANKID", "1"), ("MASTER_ADDR", "a")]);
        assert_eq!(mpich.unwrap().unwrap().local_rank, Some(1));
    }

    #[test]
    fn variables_that_cannot_be_are_named() {
        let of_rank = |rank| of(&[("RANK", rank), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a")]);
        let text = |rank| of_rank(rank).unwrap_err().to_string();
        assert_eq!(text("x"), "RANK is \"x\", which is not a number");
        assert!(text("2").starts_with("rank 2 of 2 processes is impossible"), "{}", text("2"));
        assert!(of_rank("1").is_ok());
    }
}
