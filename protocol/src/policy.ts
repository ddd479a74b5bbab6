/** Policy classes of tools. The gateway gives each tool its class; no peer sends one. */
import { enumOf, lookup } from "./dsl.ts";

export const PolicyClass = enumOf(
  "PolicyClass",
  `The most that a call of a tool can do. The gateway's policy decides by it. Not on the wire: no peer can choose the class of its tools.
\`read_private\`: reads the owner's data. \`read_public\`: reads public data. \`write_workspace\`: writes the agent's workspace.
\`write_protected\`: writes files that change how the agent behaves. \`write_files\`: writes files of a machine.
\`exec\`: runs a program. \`egress\`: sends data to others.
\`control\`: changes the gateway itself: configuration, tokens, pairing, schedules, agents.`,
  ["read_private", "read_public", "write_workspace", "write_protected", "write_files", "exec", "egress", "control"],
);

export const PolicyMode = enumOf(
  "PolicyMode",
  `What happens to a tool call that no rule decides. \`plan\`: only reads run. \`ask\`: programs, changes of a machine's files, sending and
changes of the gateway ask. \`auto\`: what stays inside the workspace or a sandbox runs, all else asks. \`full\`: everything runs.`,
  ["plan", "ask", "auto", "full"],
);

lookup("policyClassOf", {
  doc: `The policy class of a machine's tool, by the name that the machine knows (\`Bash\`, not \`laptop__Bash\`).
Every name without a row is \`exec\`, the most dangerous class of a machine's tool: an unknown tool is a program that runs with all rights
of the machine's user, so it may read, write and send anything. \`control\` is not used: it is for changes of the gateway, and a machine has no
rights there.`,
  result: PolicyClass,
  rows: {
    Bash: "exec",
    Process: "exec",
    Read: "read_private",
    Glob: "read_private",
    Grep: "read_private",
    Write: "write_files",
    Edit: "write_files",
    Delete: "write_files",
  },
  otherwise: "exec",
});
