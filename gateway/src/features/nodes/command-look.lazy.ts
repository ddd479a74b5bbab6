/**
 * Runs a command that only reads, for a condition of HEARTBEAT.md (rule HB10), as a call of the machine's tool Bash. The policy decides
 * and the audit records it like every call; nothing is asked. A file of its own, which is loaded when the first such command is run.
 */
import { type AgentDefinition, asCallId } from "../../../../protocol/gen/types.ts";
import { isAllowed } from "../../agents/definition.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { ALWAYS_ASKED, DEFAULT_MODE, decide } from "../../policy/decide.ts";
import { Policies } from "../../policy/load.ts";
import { TOOL_CALL } from "../../ports/audit.ts";
import { unknownMachine } from "../../kernel/machine-name.ts";
import type { CommandLook, CommandSeen } from "../../ports/nodes.ts";
import type { Decision } from "../../ports/policy.ts";
import type { Result } from "../../ports/result.ts";
import { taintMark } from "../../ports/taint.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import { machineToolName } from "../../tools/registry.ts";
import type { ClientCalls } from "./client-calls.ts";
import type { NodeLinks } from "./links.ts";
import type { Nodes } from "./store.ts";

export interface CommandLookPorts extends Pick<KernelPorts, "config"> {
  readonly audit: Pick<KernelPorts["audit"], "append">;
  readonly sha256: (text: string) => Promise<string>;
  readonly nodes: Pick<Nodes, "exists" | "sandboxOf">;
  readonly links: Pick<NodeLinks, "arrival" | "tools">;
  readonly calls: Pick<ClientCalls, "ask">;
  /** What is in force for the agent. Undefined: it has no definition. */
  readonly definitionOf: (agentId: string) => Promise<AgentDefinition | undefined>;
}
const TOOL = "Bash";
const COMMAND_MS = 20_000;
const ROUND_TRIP_MS = 2_000;
/** Exit statuses of a shell: it could not start the command, or found none. The sandbox ends with the first one too (rule SB10). */
const NOT_STARTED: ReadonlySet<number> = new Set([126, 127]);

const failed = (why: string): CommandSeen => ({ kind: "failed", why });
const wrong = (why: string): CommandSeen => ({ kind: "wrong", why });

export async function lookByCommand(ports: CommandLookPorts, look: CommandLook): Promise<CommandSeen> {
  const { nodes, links, config, definitionOf } = ports;
  const { nodeId, taint } = look;
  if (!nodes.exists(nodeId)) return wrong(unknownMachine(nodeId));
  await links.arrival(nodeId);
  const name = machineToolName(nodeId, TOOL);
  const entry = links.tools().find(({ definition }) => definition.name === name);
  const sandbox = nodes.sandboxOf(nodeId);
  if (sandbox === undefined || sandbox === "off")
    return wrong(
      `is for a machine without a sandbox, and only a sandbox keeps a command from changing files. \`gsv node sandbox\` there says why`,
    );
  if (entry === undefined) return failed(`The machine ${nodeId} is not connected.`);
  const args = { command: look.command, sandbox: "read-only", timeout: COMMAND_MS };
  const policy = await new Policies().of(config.effective().toolApproval);
  const call = { name, tool: TOOL, target: entry.target, policyClass: entry.policyClass, args, sandbox };
  // The agent writes HEARTBEAT.md, so that a condition must not be a way around its definition.
  const definition = await definitionOf(look.agentId);
  const alwaysAsked = definition?.autonomy?.requires_approval ?? [];
  const decision: Decision = isAllowed(definition, name)
    ? decide(call, { policy, isOwners: true, unset: DEFAULT_MODE, taint, alwaysAsked })
    : { verdict: "deny", rule: "tools.allowed", text: `The definition of the agent ${look.agentId} does not allow ${name}.` };
  await record(ports, look, name, args, decision);
  if (decision.verdict === "ask")
    return failed(`It needs your word, and a heartbeat asks for none. ${decision.why}${howToAllow(decision.rule)}`);
  if (decision.verdict === "deny") return failed(decision.text);
  return seenOf(await run(ports.calls, entry, nodeId, args), nodeId);
}
/** No rule allows what the definition asks about each time. */
const howToAllow = (rule: string): string =>
  rule === ALWAYS_ASKED
    ? ""
    : ' Allow it with a rule (toolApproval.rules) that names the command, and the argument sandbox with the value "read-only".';
async function record(
  { audit, sha256 }: CommandLookPorts,
  { agentId, taint }: CommandLook,
  name: string,
  args: object,
  { verdict, rule }: Decision,
): Promise<void> {
  audit.append({
    actor: `agent:${agentId}`,
    origin: `heartbeat${taintMark(taint)}`,
    action: TOOL_CALL,
    target: name,
    tool: name,
    decision: verdict === "allow" ? "allowed" : "denied",
    rule,
    argsHash: await sha256(JSON.stringify(args)),
  });
}
const run = (
  calls: CommandLookPorts["calls"],
  entry: ToolEntry,
  nodeId: string,
  args: Readonly<Record<string, unknown>>,
): Promise<Result<unknown>> => {
  const timeoutMs = COMMAND_MS + ROUND_TRIP_MS;
  return calls.ask(
    {
      kind: "tool",
      origin: { kind: "gateway" },
      waiter: { kind: "inside" },
      ownName: undefined,
      name: entry.definition.name,
      target: { kind: "node", nodeId },
      ledger: entry.ledger,
      // It changes nothing, so that a call whose link broke is over at once.
      idempotent: true,
      timeoutMs,
      deadlineMs: timeoutMs + ROUND_TRIP_MS,
    },
    (callId) => ({ event: "tool.invoke", payload: { callId: asCallId(callId), tool: TOOL, args: { ...args }, timeoutMs } }),
  );
};

/** No word of what the command has written is in an answer: the model may read it. */
function seenOf(answer: Result<unknown>, nodeId: string): CommandSeen {
  if (!answer.ok) return failed(whyOf(answer.error.reason, nodeId));
  const ended = field(answer.value, "result");
  const exitCode = field(ended, "exitCode");
  if (field(ended, "timedOut") === true) return failed(TIMED_OUT);
  if (typeof exitCode !== "number") return failed(`The machine ${nodeId} ended the command before it was done.`);
  if (NOT_STARTED.has(exitCode))
    return failed(
      `The command could not be started on ${nodeId} (exit status ${exitCode}): there is no such program, or the sandbox could not be set up. \`gsv node sandbox\` there tests the sandbox.`,
    );
  return { kind: "ended", isTrue: exitCode === 0 };
}
const TIMED_OUT = `The command did not end within ${COMMAND_MS / 1_000} s.`;
const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
function whyOf(reason: string, nodeId: string): string {
  if (reason === "node.offline") return `The machine ${nodeId} is not connected.`;
  if (reason === "tool.timeout" || reason === "tool.outcome_unknown") return TIMED_OUT;
  if (reason === "tool.bad_args") return `The machine ${nodeId} does not take commands that only read. Update gsv there.`;
  return `The machine ${nodeId} could not run the command (${reason}).`;
}
