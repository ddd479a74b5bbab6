/**
 * Session keys (product P3.1): the canonical names of conversations. PURE. A key has one canonical spelling, and two
 * different conversations never share one: whatever a platform calls a peer is percent-encoded, never folded.
 *
 *   agent:{agentId}:{mainKey}                        the main conversation
 *   agent:{agentId}:dm:{peer}                        a person, on any channel
 *   agent:{agentId}:cron:{jobId}                     a scheduled task
 *   agent:{agentId}:task:{taskId}                    a task of `POST /run`
 *   agent:{agentId}:{channel}:{kind}:{peer}          a conversation on a channel; kind is dm, group, channel or thread
 *   agent:{agentId}:{channel}:{account}:dm:{peer}    a person on one account of a channel
 *
 * The number of segments tells these apart, and a segment never contains a colon.
 */
import type { PeerKind } from "../../../../protocol/gen/types.ts";
import type { SessionAddress } from "../../ports/sessions.ts";

export type KeyOutcome =
  | { readonly ok: true; readonly key: string; readonly address: SessionAddress }
  | { readonly ok: false; readonly problem: string };

export const MAX_KEY_LENGTH = 512;
const PEER_KINDS: ReadonlySet<string> = new Set(["dm", "group", "channel", "thread"] satisfies PeerKind[]);
const isPeerKind = (text: string): text is PeerKind => PEER_KINDS.has(text);
const MAIN = "main";

/** Agent and account ids are the owner's own names: lower-cased, at most 64 of `[a-z0-9_-]`, other characters become `-`. */
export function normaliseId(raw: string, whenEmpty: string): string {
  const clean = raw
    .trim()
    .toLowerCase()
    .replace(/[^a-z0-9_-]/gu, "-")
    .slice(0, 64);
  return clean === "" ? whenEmpty : clean;
}

const SAFE = /^[A-Za-z0-9+\-_@.]$/;
const ALL_SAFE = /^[A-Za-z0-9+\-_@.]*$/;
/** Percent-encodes everything outside `[A-Za-z0-9+\-_@.]`, in UTF-8 and upper case. Undefined: half a character, which has no UTF-8. */
export function encodeSegment(text: string): string | undefined {
  if (ALL_SAFE.test(text)) return text;
  if (!text.isWellFormed()) return undefined;
  let out = "";
  for (const character of text) {
    if (SAFE.test(character)) out += character;
    else for (const byte of new TextEncoder().encode(character)) out += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}

/** The text behind a segment. Undefined: it has a `%` that begins no UTF-8 character. */
export function decodeSegment(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** The canonical key of an address. `mainKey` is the configured one. */
export function buildKey(address: SessionAddress, mainKey: string): KeyOutcome {
  const agentId = normaliseId(address.agentId, MAIN);
  // `{channel}:group:dm:x` could also mean a group that is called `dm:x`, so it is refused.
  if (address.form === "account" && isPeerKind(normaliseId(address.accountId, "default")))
    return bad("an account can't be called dm, group, channel or thread");
  const segments = segmentsOf(address, mainKey);
  if (segments.some((segment) => segment === undefined || segment === "")) return bad("a part of the key is empty or not valid text");
  const key = ["agent", agentId, ...segments].join(":");
  if (key.length > MAX_KEY_LENGTH) return bad(`the key would be longer than ${MAX_KEY_LENGTH} characters`);
  return { ok: true, key, address: normaliseAddress(address, agentId) };
}

function segmentsOf(address: SessionAddress, mainKey: string): (string | undefined)[] {
  switch (address.form) {
    case "main":
      return [encodeSegment(mainKey)];
    case "peer":
      return ["dm", encodeSegment(address.peer)];
    case "cron":
      return ["cron", encodeSegment(address.jobId)];
    case "task":
      return ["task", encodeSegment(address.taskId)];
    case "channel":
      return [encodeSegment(address.channel.toLowerCase()), address.kind, encodeSegment(address.peer)];
    case "account":
      return [encodeSegment(address.channel.toLowerCase()), normaliseId(address.accountId, "default"), "dm", encodeSegment(address.peer)];
  }
}

function normaliseAddress(address: SessionAddress, agentId: string): SessionAddress {
  switch (address.form) {
    case "main":
    case "peer":
    case "cron":
    case "task":
      return { ...address, agentId };
    case "channel":
      return { ...address, agentId, channel: address.channel.toLowerCase() };
    case "account":
      return { ...address, agentId, channel: address.channel.toLowerCase(), accountId: normaliseId(address.accountId, "default") };
  }
}

/**
 * What a caller wrote, as the canonical key. `main` and the configured main key are aliases of each other, alone or after
 * `agent:{agentId}:`; alone they are the default agent's. Idempotent. A text that could be read in two ways is refused, never guessed.
 */
export function canonicalKey(raw: string, mainKey: string, defaultAgent: string = MAIN): KeyOutcome {
  if (raw.length > MAX_KEY_LENGTH) return bad(`a key has at most ${MAX_KEY_LENGTH} characters`);
  const text = raw.trim();
  const parts = text.split(":");
  if (parts.length === 1) {
    const name = decodeSegment(text);
    return name === MAIN || name === mainKey ? buildKey({ form: "main", agentId: defaultAgent }, mainKey) : bad(usage(mainKey));
  }
  const [prefix, agent, ...rest] = parts;
  if (prefix?.toLowerCase() !== "agent" || agent === undefined || rest.length === 0) return bad(usage(mainKey));
  const decoded = rest.map(decodeSegment);
  if (decoded.some((segment) => segment === undefined || segment === ""))
    return bad("a part of the key is empty, or has a `%` that is no percent-encoding (write `%25`)");
  const address = addressOf(
    normaliseId(agent, MAIN),
    decoded.map((segment) => segment ?? ""),
    mainKey,
  );
  return address === undefined ? bad(usage(mainKey)) : buildKey(address, mainKey);
}

const usage = (mainKey: string): string =>
  `a session key is \`main\`, a name of your own such as \`notes\`, \`agent:{agent}:${mainKey}\`, \`agent:{agent}:{channel}:{dm|group|channel|thread}:{peer}\` or \`agent:{agent}:{channel}:{account}:dm:{peer}\`; a colon inside a name is written %3A`;

function addressOf(agentId: string, rest: readonly string[], mainKey: string): SessionAddress | undefined {
  const [first = "", second = "", third = "", fourth = ""] = rest;
  switch (rest.length) {
    case 1:
      return first === MAIN || first === mainKey ? { form: "main", agentId } : undefined;
    case 2:
      if (first.toLowerCase() === "dm") return { form: "peer", agentId, peer: second };
      if (first.toLowerCase() === "task") return { form: "task", agentId, taskId: second };
      return first.toLowerCase() === "cron" ? { form: "cron", agentId, jobId: second } : undefined;
    case 3: {
      const kind = second.toLowerCase();
      return isPeerKind(kind) ? { form: "channel", agentId, channel: first, kind, peer: third } : undefined;
    }
    case 4:
      return third.toLowerCase() === "dm" ? { form: "account", agentId, channel: first, accountId: second, peer: fourth } : undefined;
    default:
      return undefined;
  }
}

/**
 * Whether only the owner takes part: the main conversation, and those of the command line. Messages enter a `cli` conversation only
 * through a client's token, so no channel may be called `cli`.
 */
export function isOwnersOwn(address: SessionAddress): boolean {
  return address.form === "main" || (address.form === "channel" && address.channel === "cli" && address.kind === "dm");
}

const bad = (problem: string): KeyOutcome => ({ ok: false, problem });
