/**
 * The first meeting with the demo model. It reads its own prompt and understands one kind of sentence ("your name is Ada and I am
 * Sam"). Then it follows BOOTSTRAP.md with real tools: writes IDENTITY.md, USER.md and SOUL.md, deletes BOOTSTRAP.md. PURE.
 */
import type { ToolResultMessage } from "../ports/messages.ts";

type Call = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
export type MeetingStep = { readonly text: string } | { readonly calls: readonly Call[] };
interface Names {
  readonly agent?: string;
  readonly human?: string;
}

const MAX_NAME = 40;
/** One to three words that begin with a letter. */
const NAME = String.raw`([\p{L}][\p{L}\p{M}\p{N}'’._-]*(?: [\p{L}][\p{L}\p{M}\p{N}'’._-]*){0,2}?)`;
/** What may follow a name: the end of a sentence, or a word that begins the second name's clause. */
const END = String.raw`(?=\s*(?:[.!?,;:()\n]|$|\s(?:and|but|my|your|you|i|call)\b))`;
const phrase = (begin: string): RegExp => new RegExp(String.raw`(?:^|[\s,.;!?(])(?:${begin})\s+${NAME}${END}`, "iu");
const AGENT = phrase(
  "your name (?:is|will be|shall be)|you(?:['’]re| are) (?:called|named)|(?:i(?:['’]ll| will)? )?call you|call yourself",
);
const HUMAN = phrase("i(?:['’]m| am)(?: called)?|my name(?: is|['’]s)|call me");
/** "I am new here" contains no name; "i am sam" does. */
const NO_NAME =
  /^(?:a|an|the|not|new|here|your|his|her|their|so|very|just|in|on|at|from|happy|glad|fine|good|ok|okay|sorry|back|ready|called|going|doing|trying|looking|no(?:body|-one)|human|me|you|it|who)$/iu;

function nameIn(text: string, pattern: RegExp): string | undefined {
  const name = pattern
    .exec(text)?.[1]
    ?.trim()
    .replace(/[.'’_-]+$/u, "");
  if (name === undefined || name === "" || name.length > MAX_NAME || NO_NAME.test(name.split(" ")[0] ?? "")) return undefined;
  return name;
}
export function namesIn(text: string): Names {
  const agent = nameIn(text, AGENT);
  const human = nameIn(text, HUMAN);
  return { ...(agent === undefined ? {} : { agent }), ...(human === undefined ? {} : { human }) };
}

/** A section of the prompt, by its heading. The text of files never has headings of that level. */
function section(systemPrompt: string, title: string): string | undefined {
  const heading = `\n## ${title}\n`;
  const at = `\n${systemPrompt}`.indexOf(heading);
  if (at === -1) return undefined;
  const rest = `\n${systemPrompt}`.slice(at + heading.length);
  const end = rest.search(/\n## /);
  return (end === -1 ? rest : rest.slice(0, end)).trim();
}
export const isCommissioning = (systemPrompt: string): boolean => section(systemPrompt, "Commissioning (BOOTSTRAP.md)") !== undefined;

/** The value of a field, from its own line alone. */
function fieldIn(text: string | undefined, name: string): string | undefined {
  const value = new RegExp(String.raw`^[ \t]*[-*]?[ \t]*\**${name}\**[ \t]*:\**[ \t]*(.+)$`, "imu").exec(text ?? "")?.[1]?.trim();
  return value === undefined || value === "" || value.startsWith("(") ? undefined : value.slice(0, 200);
}
/** The person's name in USER.md, which `gsv setup` may have written before the first meeting. */
export function humanIn(systemPrompt: string): string | undefined {
  const user = section(systemPrompt, "About Your Human");
  return fieldIn(user, "What to call them") ?? fieldIn(user, "Name");
}
const WHO_ARE_YOU = /^\W*(?:(?:hello|hi|hey)\W+)?(?:who are you|what(?:['’]s| is) your name|do you know who you are)\W*$/iu;
const WHO_AM_I = /^\W*(?:who am i|what(?:['’]s| is) my name|do you know me|do you know who i am)\W*$/iu;

/** The answer to "who are you?" and "who am I?", from the prompt alone. Undefined when the text asks something else or the prompt has no answer. */
export function fromIdentity(text: string, systemPrompt: string): string | undefined {
  const identity = section(systemPrompt, "Your Identity");
  const agent = fieldIn(identity, "Name");
  const human = humanIn(systemPrompt);
  if (WHO_ARE_YOU.test(text)) {
    if (agent === undefined) return undefined;
    const emoji = fieldIn(identity, "Emoji");
    const kind = fieldIn(identity, "Class");
    return `I am ${agent}${emoji === undefined ? "" : ` ${emoji}`}${kind === undefined ? "" : `, ${kind}`}.${human === undefined ? "" : ` I am here for ${human}.`} So says IDENTITY.md in my prompt.`;
  }
  if (WHO_AM_I.test(text)) return human === undefined ? undefined : `You are ${human}. So says USER.md in my prompt.`;
  return undefined;
}

/** What the help says before the first meeting. `human`: their name in USER.md. */
export const notMet = (human: string | undefined): string =>
  human === undefined
    ? "We have not met yet (BOOTSTRAP.md). Say who we are: `your name is Ada and I am Sam`."
    : "I have no name yet (BOOTSTRAP.md). Say who I am: `your name is Ada`.";

/** `canRun`: the agent has tools of a machine. `known`: the person's name in USER.md. */
const opening = (canRun: boolean, known: string | undefined): string =>
  [
    known === undefined
      ? "Hello! I have just come to life in a new workspace, and we have not met. Who am I, and who are you?"
      : `Hello, ${known}! I have just come to life in a new workspace, and I have no name yet. Who am I?`,
    "",
    known === undefined
      ? "I am only the demo model, so answer like this: `your name is Ada and I am Sam`. Then I write down who we are (IDENTITY.md, USER.md, SOUL.md), delete BOOTSTRAP.md, and know it from then on. Set a real model first if you would rather talk it over."
      : "I am only the demo model, so answer like this: `your name is Ada`. Then I write down who I am (IDENTITY.md, SOUL.md), delete BOOTSTRAP.md, and know it from then on. Set a real model first if you would rather talk it over.",
    "",
    canRun
      ? "You can also get to work at once: `run: uname -a` runs a command on your machine, `help` shows the other phrases."
      : "You can also get to work at once: `help` shows the phrases that work here.",
  ].join("\n");

const FILES = (agent: string, human: string): readonly (readonly [path: string, content: string, append: boolean])[] => [
  ["IDENTITY.md", `# Identity\n\n- Name: ${agent}\n- Class: a personal assistant\n- Manner: short and friendly\n- Emoji: 🛰️\n`, false],
  [
    "USER.md",
    `# Your human\n\n- Name: ${human}\n- What to call them: ${human}\n- Languages:\n- Time zone:\n- What matters to them:\n- What they want help with:\n`,
    false,
  ],
  ["SOUL.md", `\n## Since the first meeting\n\n- I am ${agent}, and I am here for ${human}.\n`, true],
];
const DONE = (agent: string, human: string): string =>
  `Done, ${human}. I am ${agent} now: IDENTITY.md, USER.md and SOUL.md say so, and BOOTSTRAP.md is deleted. Ask me \`who are you?\`, in a fresh conversation too (\`/new\`). The files are yours: \`gsv workspace edit IDENTITY.md\`.`;

/**
 * The next step of the meeting, when the person's last message begins or continues it. `results`: of the calls made since then.
 * `earlier`: the person's earlier messages, oldest first. `canRun`: the agent has tools of a machine.
 * `known`: the person's name in USER.md, which stays as it is unless they say another.
 */
export function meet(
  last: string,
  {
    earlier,
    results,
    canRun,
    known,
  }: {
    readonly earlier: readonly string[];
    readonly results: readonly ToolResultMessage[];
    readonly canRun: boolean;
    readonly known: string | undefined;
  },
): MeetingStep | undefined {
  const now = namesIn(last);
  if (now.agent === undefined && now.human === undefined) return results.length === 0 ? { text: opening(canRun, known) } : undefined;
  const said = [...earlier].reverse().map(namesIn);
  const agent = now.agent ?? said.find((names) => names.agent !== undefined)?.agent;
  const human = now.human ?? said.find((names) => names.human !== undefined)?.human ?? known;
  if (human === undefined) return { text: `${agent ?? ""}: I like it. And who are you? Say \`I am Sam\`.` };
  if (agent === undefined) return { text: `Nice to meet you, ${human}. And who am I? Say \`your name is Ada\`.` };
  const failed = results.find(({ isError }) => isError);
  if (failed) return undefined;
  if (results.some(({ toolName }) => toolName === "gsv__DeleteFile")) return { text: DONE(agent, human) };
  if (results.length > 0) return { calls: [{ name: "gsv__DeleteFile", arguments: { path: "BOOTSTRAP.md" } }] };
  return {
    calls: FILES(agent, human)
      .filter(([path]) => path !== "USER.md" || human !== known)
      .map(([path, content, append]) => ({
        name: "gsv__WriteFile",
        arguments: { path, content, ...(append ? { append } : {}) },
      })),
  };
}
