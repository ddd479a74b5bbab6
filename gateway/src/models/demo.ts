/**
 * The built-in demo model: deterministic, no key, no network. It follows the phrases of demo-phrases.ts. A new
 * user sees the whole loop work, including tools on a machine. It always says that it is the demo and how to set a real
 * model. It never claims to understand language.
 */
import type { ToolDefinition, Usage } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import type { AssistantMessage, Message, ToolCallBlock, ToolResultMessage } from "../ports/messages.ts";
import { hintsOf } from "../calls/task-advice.ts";
import type { ModelOutcome, ModelRequest } from "../ports/model.ts";
import { isOfHook } from "../prompt/hook.ts";
import { HOSTS } from "../policy/hosts.ts";
import { instructionsIn } from "../prompt/task.ts";
import { fromIdentity, humanIn, isCommissioning, meet, notMet } from "./demo-commissioning.ts";
import { type DemoPhrase, parsePhrases } from "./demo-phrases.ts";
import { cancelled } from "./failure.ts";
import type { Timers } from "./watchdog.ts";

const WORD_MS = 200;
export const DEMO_NOTE =
  "(This is the built-in demo model: it only follows a few phrases. For a real one: `gsv setup`, which asks for a provider and its key.)";
/** After the first answer of a conversation. */
const DEMO_MARK = "(demo model)";
const HEAD = ["I am GSV's demo model. I don't understand language; I follow these phrases:", "", "- `say TEXT` - I say it"];
const ON_MACHINES = [
  "- `run: COMMAND` - runs a command on your machine (`run@NAME: COMMAND` picks one)",
  "- `read: PATH`, `write: PATH <- TEXT`, `search: PATTERN`, `glob: PATTERN` - files on your machine",
];
const WITH_HOSTS =
  "- `run with HOST: COMMAND` - runs it in the machine's sandbox and asks you for that host (`run with example.org: curl https://example.org`)";
const NO_MACHINE = "- commands and files on a machine: this agent has no tools of a machine now (`gsv node` connects one)";
const OWN = [
  "- `read: gsv:PATH`, `write: gsv:PATH <- TEXT`, `ls: PATH` - the agent's own files",
  "- `remember: TEXT` - adds a line to MEMORY.md",
  "- `who are you?`, `who am I?` - what IDENTITY.md and USER.md say",
  "- `think: TEXT`, `slow: N`, `tools`",
];
const DELEGATE = "- `delegate: AGENT TASK` - hands a task to another agent";

/** Only phrases that work now: machines and delegation are offered as tools. */
function helpFor(tools: readonly ToolDefinition[]): string {
  const mayDelegate = tools.some((tool) => tool.name.startsWith("delegate_to_"));
  const onMachines = [...ON_MACHINES, ...(tools.some(takesHosts) ? [WITH_HOSTS] : [])];
  return [...HEAD, ...(hasMachine(tools) ? onMachines : [NO_MACHINE]), ...OWN, ...(mayDelegate ? [DELEGATE] : [])].join("\n");
}
/** Those of a machine that is not connected count, too. */
const hasMachine = (tools: readonly ToolDefinition[]): boolean =>
  tools.some(({ name }) => name.includes("__") && !name.startsWith("gsv__"));

type Step =
  | { readonly text: string; readonly thinking?: string; readonly pace?: number }
  | { readonly calls: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[] };

function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
}

/** A tool's output, unchanged: a command's `output` and how it ended, a file's `content`, else the whole result. */
function outputOf(result: ToolResultMessage): string {
  const all = textOf(result);
  let value: unknown;
  try {
    value = JSON.parse(all);
  } catch {
    return all;
  }
  if (isJsonObject(value) && value["ok"] === true && value["result"] !== undefined) value = value["result"];
  if (typeof value === "string") return value;
  if (!isJsonObject(value)) return all;
  const main = value["output"] ?? value["content"];
  if (typeof main !== "string") return all;
  const { exitCode, signal, note } = value;
  // A command may end without an error and have a note: it took the answer of the proxy for that of the host.
  return [
    main,
    typeof exitCode === "number" && exitCode !== 0 ? `[exit code ${exitCode}]` : undefined,
    value["timedOut"] === true ? "[timed out]" : undefined,
    typeof signal === "string" ? `[ended by ${signal}]` : undefined,
    typeof note === "string" ? `[The machine says: ${note}.]` : undefined,
  ]
    .filter((line) => line !== undefined)
    .join("\n");
}
function report(results: readonly ToolResultMessage[]): string {
  return results
    .map((result) => {
      const output = outputOf(result);
      const fence = output.includes("```") ? "````" : "```";
      return `\`${result.toolName}\` ${result.isError ? "failed" : "answered"}:\n\n${fence}\n${output.replace(/\n$/, "")}\n${fence}`;
    })
    .join("\n\n");
}

const nodesOf = (tools: readonly ToolDefinition[]): string[] => [
  ...new Set(
    tools
      .filter(isHere)
      .flatMap((tool) => (tool.name.startsWith("gsv__") || !tool.name.includes("__") ? [] : [tool.name.slice(0, tool.name.indexOf("__"))])),
  ),
];

/** The tools of a machine that is not connected have an argument for the wait: they are called only by the machine's name. */
const isHere = (tool: ToolDefinition): boolean => !takes(tool, "wait");
const takesHosts = (tool: ToolDefinition): boolean => takes(tool, HOSTS);
function takes({ inputSchema }: ToolDefinition, argument: string): boolean {
  const properties = inputSchema["properties"];
  return typeof properties === "object" && properties !== null && Object.hasOwn(properties, argument);
}

/** A call for a phrase, or a sentence that says why the call is not possible. */
function toCall(
  phrase: DemoPhrase,
  tools: readonly ToolDefinition[],
): { name: string; arguments: Readonly<Record<string, unknown>> } | string {
  const has = (name: string): boolean => tools.some((tool) => tool.name === name);
  if (phrase.kind === "native")
    return has(phrase.tool) ? { name: phrase.tool, arguments: phrase.args } : `The tool \`${phrase.tool}\` is not available.`;
  if (phrase.kind === "delegate") {
    const name = `delegate_to_${phrase.agent}`;
    return has(name) ? { name, arguments: { instructions: phrase.task } } : `There is no agent \`${phrase.agent}\` to delegate to.`;
  }
  if (phrase.kind !== "node") return "";
  const nodes = nodesOf(tools);
  const wantsHosts = Object.hasOwn(phrase.args, HOSTS);
  const offers = (node: string): boolean =>
    tools.some((tool) => tool.name === `${node}__${phrase.tool}` && (!wantsHosts || takesHosts(tool)));
  const on = (node: string): ReturnType<typeof toCall> =>
    offers(node)
      ? { name: `${node}__${phrase.tool}`, arguments: phrase.args }
      : `\`${node}\` has no sandbox, or its sandbox lets no command ask for hosts: \`gsv node sandbox\` there tells why. Without hosts, say \`run: COMMAND\`.`;
  if (phrase.node !== undefined && has(`${phrase.node}__${phrase.tool}`)) return on(phrase.node);
  if (nodes.length === 0) {
    const machine = phrase.node === undefined ? "the machine that you want to use" : `\`${phrase.node}\``;
    return `No machine is connected, or this agent may use none (\`tools.allowed\` of its definition), so I can't do that. On ${machine}, start \`gsv node\`, then say it again.`;
  }
  const node = phrase.node === undefined ? (nodes.find(offers) ?? nodes.find((name) => has(`${name}__${phrase.tool}`))) : undefined;
  if (node !== undefined) return on(node);
  return phrase.node !== undefined && !nodes.includes(phrase.node)
    ? `No machine named \`${phrase.node}\` is connected; there ${nodes.length === 1 ? "is" : "are"} ${nodes.join(", ")}.`
    : `\`${phrase.node ?? nodes[0]}\` does not offer the tool ${phrase.tool}.`;
}

/** What a hook brings stands in a message as JSON, whose texts have quotes, or in a fence. Words are followed here without understanding, so they get into no call. */
const NOT_CALLED = "I put nothing that a hook has brought into a call: I can't tell whether it is meant as a command. A real model can.";
const mayBeBrought = (words: string, args: Readonly<Record<string, unknown>>): boolean =>
  words.includes("<<<") || Object.values(args).some((value) => String(value).includes('"'));

const lineOf = ({ name, description }: ToolDefinition): string => `- \`${name}\`: ${description.split("\n")[0]?.slice(0, 120) ?? ""}`;

/** The next step. Depends only on the conversation. */
export function demoStep(messages: readonly Message[], tools: readonly ToolDefinition[], systemPrompt: string): Step {
  const results: ToolResultMessage[] = [];
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i];
    if (message?.role !== "toolResult") break;
    results.unshift(message);
  }
  const said = messages.filter((message) => message.role === "user").map(textOf);
  const message = said.at(-1) ?? "";
  // The data of a task, and its fences, are no words of who gave it.
  const words = instructionsIn(message) ?? message;
  const phrases = parsePhrases(words);
  const isHook = isOfHook(words);
  const meeting =
    phrases.length === 0 && !isHook && isCommissioning(systemPrompt)
      ? meet(words, { earlier: said.slice(0, -1), results, canRun: hasMachine(tools), known: humanIn(systemPrompt) })
      : undefined;
  if (results.length > 0) return meeting ?? { text: report(results) };
  const acts = phrases.filter((phrase) => phrase.kind === "node" || phrase.kind === "native" || phrase.kind === "delegate");
  if (acts.length > 0) {
    const planned = acts.map((phrase) => toCall(phrase, tools));
    const calls = planned.filter((call) => typeof call !== "string");
    if (isHook && calls.some((call) => mayBeBrought(words, call.arguments))) return { text: NOT_CALLED };
    if (calls.length > 0) return { calls };
    return { text: [...new Set(planned)].join("\n") };
  }
  const phrase = phrases[0];
  switch (phrase?.kind) {
    case "say":
      return { text: phrase.text === "" ? "Say what? Write `say` and then the words." : phrase.text };
    case "think":
      return { thinking: phrase.text, text: `I thought about it: ${phrase.text}` };
    case "slow":
      return { text: Array.from({ length: phrase.words }, (_, i) => `word${i + 1}`).join(" "), pace: WORD_MS };
    case "tools":
      return {
        text: tools.length === 0 ? "There are no tools." : `Tools:\n\n${tools.map(lineOf).join("\n")}`,
      };
    case "help":
      return {
        text: isCommissioning(systemPrompt) ? `${helpFor(tools)}\n\n${notMet(humanIn(systemPrompt))}` : helpFor(tools),
      };
    default: {
      const text = fromIdentity(words, systemPrompt);
      return text === undefined ? (meeting ?? { text: helpFor(tools) }) : { text };
    }
  }
}

function usageOf(request: ModelRequest, output: number): Usage {
  let chars = request.systemPrompt.length;
  for (const message of request.messages) {
    if (typeof message.content === "string") chars += message.content.length;
    else for (const block of message.content) if (block.type === "text") chars += block.text.length;
  }
  const input = Math.ceil(chars / 4);
  const out = Math.ceil(output / 4);
  return { input, output: out, cacheRead: 0, cacheWrite: 0, total: input + out, costUsd: 0 };
}

/** Streams word by word; false when the run was stopped. */
async function stream(text: string, pace: number | undefined, request: ModelRequest, timers: Timers): Promise<boolean> {
  for (const word of text.match(/\S+\s*|\s+/g) ?? []) {
    if (request.signal.aborted) return false;
    if (pace !== undefined) await pause(pace, request.signal, timers);
    if (request.signal.aborted) return false;
    request.onText(word);
  }
  return true;
}
function pause(ms: number, signal: AbortSignal, timers: Timers): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      signal.removeEventListener("abort", done);
      resolve();
    };
    const cancel = timers.set(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}

export async function callDemo(request: ModelRequest, timers: Timers): Promise<ModelOutcome> {
  if (request.signal.aborted) return cancelled();
  const late = new AbortController();
  const stop = timers.set(() => late.abort(), request.timeoutMs);
  const signal = AbortSignal.any([request.signal, late.signal]);
  const outcome = await answered({ ...request, signal }, timers).finally(stop);
  return late.signal.aborted && !request.signal.aborted ? tooLate(request.timeoutMs) : outcome;
}
const tooLate = (ms: number): ModelOutcome => ({
  kind: "failed",
  error: {
    reason: "model.timeout",
    message: `The demo model did not finish within ${Math.round(ms / 1000)} seconds.`,
    ...hintsOf("model.timeout"),
  },
  retryable: true,
});
async function answered(request: ModelRequest, timers: Timers): Promise<ModelOutcome> {
  const step = demoStep(request.messages, request.tools, request.systemPrompt);
  const reply = (
    content: AssistantMessage["content"],
    stopReason: AssistantMessage["stopReason"],
    chars: number,
  ): Extract<ModelOutcome, { kind: "replied" }> => {
    const usage = usageOf(request, chars);
    const calls = content
      .filter((block): block is ToolCallBlock => block.type === "toolCall")
      .map((block) => ({ providerId: block.id, name: block.name, arguments: block.arguments }));
    return {
      kind: "replied",
      message: { role: "assistant", content, api: "demo", provider: "demo", model: "demo", usage, stopReason, timestamp: request.now() },
      calls,
      usage,
    };
  };
  if ("calls" in step) {
    const calls = step.calls.map(
      (call, index): ToolCallBlock => ({
        type: "toolCall",
        id: `demo_${request.messages.length}_${index}`,
        name: call.name,
        arguments: call.arguments,
      }),
    );
    return reply(calls, "toolUse", JSON.stringify(step.calls).length);
  }
  const isTold = request.messages.some((message) => message.role === "assistant" && textOf(message).includes(DEMO_NOTE));
  const text = `${step.text}\n\n${isTold ? DEMO_MARK : DEMO_NOTE}`;
  if (step.thinking !== undefined) request.onThought?.(step.thinking);
  if (!(await stream(text, step.pace, request, timers))) return cancelled();
  return reply(
    [...(step.thinking === undefined ? [] : [{ type: "thinking", thinking: step.thinking } as const]), { type: "text", text }],
    "stop",
    text.length,
  );
}
