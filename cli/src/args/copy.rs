//! `gsv cp`.

use clap::Args;
use gsv_protocol::types::AgentId;

#[derive(Debug, Args)]
#[command(
    after_help = "NODE:PATH is a file of a machine, relative to the folder that its agent works in; gsv:PATH is a file of the agent's workspace; any other path is a file of this machine. `gsv nodes list` shows the machines. The copy counts only when its checksum is right, and goes on after an interruption: by itself between machines and the workspace, with the same command for a file of this machine. With -r the content of the folder goes into DESTINATION, or into a folder with its name there when DESTINATION ends with `/`; the same command again copies what is left. Ctrl-C cancels it."
)]
pub struct Copy {
    /// File to copy, as in laptop:reports/may.pdf, gsv:notes.zip or ./photo.jpg
    #[arg(value_name = "SOURCE")]
    pub source: String,
    /// Copy to here, as in gsv:reports/may.pdf or desktop:notes.zip; with `/` at its end, keep the name of the source
    #[arg(value_name = "DESTINATION")]
    pub destination: String,
    /// Copy a folder of this machine or of the workspace, with everything in it but links
    #[arg(short, long)]
    pub recursive: bool,
    /// Replace the destination if it exists
    #[arg(long)]
    pub force: bool,
    /// Agent that the workspace belongs to [default: main]
    #[arg(long, value_name = "ID")]
    pub agent: Option<AgentId>,
}
