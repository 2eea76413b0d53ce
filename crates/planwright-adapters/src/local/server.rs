//! Which tools the server has, and which call goes to which of them.

use super::http_get::HttpGet;
use super::off_thread::{reading, writing};
use super::workspace::Workspace;
use super::{
    LocalOptions, append_file, http_get, list_dir, read_file, run_command, search_code, write_file,
};
use crate::process::Children;
use crate::toolbox::InProcessServer;
use planwright_core::tool::ToolDefinition;
use planwright_engine::port::{BoxFuture, Call, CallError, Outcome};
use std::io;
use std::sync::Arc;

pub(super) const SERVER: &str = "local";

/// The server `local`.
#[derive(Debug)]
pub struct Local {
    workspace: Arc<Workspace>,
    run_command: bool,
    http_get: Option<Arc<HttpGet>>,
    children: Children,
}

impl Local {
    /// Opens the workspace directory, which must exist, and holds on to it: if its name later means
    /// another directory, the tools stay in the first.
    pub fn open(options: LocalOptions) -> io::Result<Self> {
        let LocalOptions {
            workspace,
            run_command,
            http_get,
            children,
        } = options;
        Ok(Self {
            workspace: Arc::new(Workspace::open(&workspace)?),
            run_command,
            children,
            http_get: http_get
                .enabled
                .then(|| Arc::new(HttpGet::new(&http_get.allow))),
        })
    }
}

impl InProcessServer for Local {
    fn name(&self) -> &'static str {
        SERVER
    }

    fn definitions(&self) -> Vec<ToolDefinition> {
        let mut definitions = vec![
            append_file::definition(),
            list_dir::definition(),
            read_file::definition(),
            search_code::definition(),
            write_file::definition(),
        ];
        definitions.extend(self.run_command.then(run_command::definition));
        definitions.extend(self.http_get.is_some().then(http_get::definition));
        definitions
    }

    fn disabled_tools(&self) -> Vec<(&'static str, &'static str)> {
        const ENABLE: &str = "enable it in planwright.toml";
        let mut disabled = Vec::new();
        if !self.run_command {
            disabled.push((run_command::NAME, ENABLE));
        }
        if self.http_get.is_none() {
            disabled.push((http_get::NAME, ENABLE));
        }
        disabled
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let workspace = Arc::clone(&self.workspace);
        match (call.tool.tool.as_str(), &self.http_get) {
            (append_file::NAME, _) => writing(call, move |args| append_file::run(&workspace, args)),
            (list_dir::NAME, _) => reading(call, move |args, stop| {
                list_dir::run(&workspace, &args, stop)
            }),
            (read_file::NAME, _) => reading(call, move |args, _| read_file::run(&workspace, &args)),
            (search_code::NAME, _) => reading(call, move |args, stop| {
                search_code::run(&workspace, &args, stop)
            }),
            (write_file::NAME, _) => writing(call, move |args| write_file::run(&workspace, args)),
            (run_command::NAME, _) if self.run_command => {
                Box::pin(run_command::run(workspace, self.children.clone(), call))
            }
            (http_get::NAME, Some(http_get)) => Box::pin(Arc::clone(http_get).run(call)),
            (other, _) => {
                let error = CallError::Unavailable(format!("there is no tool {SERVER}.{other}"));
                Box::pin(std::future::ready(Err(error)))
            }
        }
    }
}
