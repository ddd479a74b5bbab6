/**
 * The phrases that the demo model understands. PURE: text in, a plan out.
 *
 *   say TEXT                 answers TEXT
 *   run: COMMAND             runs a command on the first connected machine (`run@NAME: COMMAND` on that one)
 *   run with HOST: COMMAND   runs a command in the sandbox of a machine that may reach this host (`run with HOST, HOST: ...`)
 *   read: PATH               reads a file there; `read: gsv:PATH` reads the agent's own
 *   write: PATH <- TEXT      writes one; `gsv:` as above
 *   search: PATTERN          searches there with Grep
 *   glob: PATTERN            finds files there by name
 *   process: ID              asks for the status of a background command
 *   ls: PATH                 lists the agent's own files
 *   remember: TEXT           adds a line to MEMORY.md
 *   delegate: AGENT TASK     delegates TASK to another agent, when delegation is offered
 *   think: TEXT              thinks TEXT, then answers
 *   slow: N                  streams N words, one every 200 ms
 *   tools                    lists the tools
 *   who are you?             answers from IDENTITY.md in the prompt (demo-commissioning.ts), `who am I?` from USER.md
 *
 * Several lines that each begin with a tool's phrase become parallel calls. Any other line belongs to
 * the phrase above it. Any other message gets the list above; before the first meeting is over
 * (BOOTSTRAP.md), it gets the meeting's next step.
 */
export type DemoPhrase =
  | { readonly kind: "say" | "think"; readonly text: string }
  | { readonly kind: "slow"; readonly words: number }
  | { readonly kind: "tools" | "help" }
  | { readonly kind: "delegate"; readonly agent: string; readonly task: string }
  | { readonly kind: "node"; readonly tool: string; readonly node: string | undefined; readonly args: Readonly<Record<string, unknown>> }
  | { readonly kind: "native"; readonly tool: string; readonly args: Readonly<Record<string, unknown>> };

const PHRASE =
  /^\s*(run|read|write|search|glob|process|ls|remember|delegate|think|slow|say|tools|help)(?:@([A-Za-z0-9][\w.-]*))?\s*(?::\s*|\s+|$)(.*)$/is;
/** A command that asks for hosts (rule SB17). A colon before a digit begins a port. */
const RUN_WITH_HOSTS =
  /^\s*run(?:@([A-Za-z0-9][\w.-]*))?\s+with\s+([\w*.-]+(?::\d{1,5})?(?:\s*,\s*[\w*.-]+(?::\d{1,5})?)*)\s*:(?!\d)(.*)$/is;
/** In `run with care: x` there is none. */
const isHost = (name: string): boolean => /[.:]/.test(name) || name.toLowerCase() === "localhost";
/** These work without a colon; the others are too common as first words. */
const COLON_OPTIONAL = new Set(["say", "tools", "help"]);
export const MAX_SLOW_WORDS = 600;

interface Found {
  readonly word: string;
  readonly node: string | undefined;
  readonly hosts?: readonly string[];
  readonly lines: string[];
}
function one({ word, node, hosts, lines }: Found): DemoPhrase | undefined {
  const rest = lines.join("\n").trimEnd();
  const body = rest.trim();
  const own = body.startsWith("gsv:") ? body.slice(4).trim() : undefined;
  switch (word) {
    case "say":
      return { kind: "say", text: body };
    case "think":
      return { kind: "think", text: body };
    case "slow":
      return { kind: "slow", words: Math.min(MAX_SLOW_WORDS, Math.max(1, Number.parseInt(body, 10) || 20)) };
    case "tools":
    case "help":
      return body === "" ? { kind: word } : undefined;
    case "run":
      return { kind: "node", tool: "Bash", node, args: { command: body, ...(hosts && { sandbox: "workspace+net", hosts }) } };
    case "read":
      return own === undefined
        ? { kind: "node", tool: "Read", node, args: { path: body } }
        : { kind: "native", tool: "gsv__ReadFile", args: { path: own } };
    case "write": {
      const arrow = body.indexOf("<-");
      if (arrow === -1) return undefined;
      const path = body.slice(0, arrow).trim();
      const content = body.slice(arrow + 2).replace(/^ /, "");
      return path.startsWith("gsv:")
        ? { kind: "native", tool: "gsv__WriteFile", args: { path: path.slice(4).trim(), content } }
        : { kind: "node", tool: "Write", node, args: { path, content } };
    }
    case "search":
      return { kind: "node", tool: "Grep", node, args: { pattern: body } };
    case "glob":
      return { kind: "node", tool: "Glob", node, args: { pattern: body } };
    case "process":
      return { kind: "node", tool: "Process", node, args: body === "" ? { action: "list" } : { action: "poll", sessionId: body } };
    case "ls":
      return { kind: "native", tool: "gsv__ListFiles", args: body === "" ? {} : { path: body } };
    case "remember":
      return {
        kind: "native",
        tool: "gsv__WriteFile",
        args: { path: "MEMORY.md", content: `- ${body.replace(/\s+/g, " ")}\n`, append: true },
      };
    case "delegate": {
      const [agent = "", ...task] = body.split(/\s+/);
      return { kind: "delegate", agent, task: task.join(" ") };
    }
    default:
      return undefined;
  }
}

/** The phrases of a message, in order; empty when it has none. */
export function parsePhrases(text: string): readonly DemoPhrase[] {
  const found: Found[] = [];
  for (const line of text.split("\n")) {
    const [, machine, hosts, command = ""] = RUN_WITH_HOSTS.exec(line) ?? [];
    const match = PHRASE.exec(line);
    const word = match?.[1]?.toLowerCase() ?? "";
    const colon = match !== null && /^\s*\w+(?:@[\w.-]+)?\s*:/.test(line);
    const named = hosts?.split(/\s*,\s*/);
    if (named?.every(isHost)) found.push({ word: "run", node: machine, hosts: named, lines: [command] });
    else if (match && (colon || COLON_OPTIONAL.has(word))) found.push({ word, node: match[2], lines: [match[3] ?? ""] });
    else found.at(-1)?.lines.push(line);
  }
  return found.flatMap((phrase) => one(phrase) ?? []);
}
