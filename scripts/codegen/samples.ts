/**
 * Example values for any type of the contract: the smallest valid one, a full one, and ones that are wrong in exactly one
 * way. Deterministic. Used to seed protocol/golden, and by property tests.
 */
import type { Arm, Field, Model, Node, TypeDef } from "./model.ts";
import { ContractError } from "./model.ts";

export type Mode = "minimal" | "full";
/** How an invalid example differs from a valid one. serde sees every mistake except `bound`. */
export type Mistake = "missing" | "type" | "null" | "bound" | "value" | "tag";
/** One line of protocol/golden/<Type>.jsonl. */
export type Example =
  /** `minimal`, `full`, the value of an enum, or `<arm>-minimal`. Unique among the valid examples of the type. */
  | { readonly name: string; readonly valid: true; readonly value: unknown }
  /** The mistake and where it is: `missing-id`, `bound-runId-in-delta`. Unique among the invalid examples of the type. */
  | { readonly name: string; readonly valid: false; readonly mistake: Mistake; readonly value: unknown };

const valid = (name: string, value: unknown): Example => ({ name, valid: true, value });
const invalid = (mistake: Mistake, place: string, value: unknown): Example => ({
  name: place === "" ? mistake : `${mistake}-${place}`,
  valid: false,
  mistake,
  value,
});

/** Realistic values by type or by field name. Others get a plain value. */
const BY_TYPE: Readonly<Record<string, string>> = {
  AgentId: "main",
  CallId: "s7/r12/t3/0",
  Capability: "shell.exec",
  ClientId: "cli-4f2a",
  MessageId: "01JDQ2Z7M8W0V5K3N4T6Y9XABC",
  NodeId: "laptop",
  RunId: "run-5e0c1b",
  SessionKey: "agent:main:cli:dm:main",
  TokenId: "k3v9x2",
  ToolName: "laptop__Bash",
};
/** Values for single fields, before those by field name. */
const BY_PLACE: Readonly<Record<string, string>> = {
  "ChatTool.name": "laptop__Bash",
  "ClientInfo.id": "cli-4f2a",
  "ErrorShape.message": "The machine is not connected. Start `gsv node` on it.",
  "ModelConfig.id": "claude-sonnet-4-5",
  "ModelRef.id": "claude-sonnet-4-5",
  "SkillEntry.name": "release",
  "ToolDefinition.name": "Bash",
  "ToolInvokeEvent.tool": "Bash",
};
const BY_FIELD: Readonly<Record<string, string>> = {
  accountId: "default",
  action: "tokens.create",
  actor: "token:k3v9x2",
  archivedTo: "archives/main/0001.jsonl.gz",
  baseUrl: "http://127.0.0.1:11434/v1",
  callId: "s7/r12/t3/0",
  channel: "whatsapp",
  chunk: "compiling...\n",
  clientPlatform: "linux-x64",
  clientVersion: "0.1.0",
  connectionId: "c-19",
  content: "# Notes\n\nBuy milk.\n",
  currentSessionId: "5d3f",
  data: "aGVsbG8=",
  description: "Runs a command in the login shell.",
  end: "23:00",
  error: "The machine is not connected. Start `gsv node` on it.",
  event: "chat",
  every: "30m",
  filename: "photo.jpg",
  fingerprint: "0123456789abcdef",
  handle: "@ada",
  location: "skills/release/SKILL.md",
  message: "What is the weather like?",
  method: "chat.send",
  mime: "text/plain",
  mimeType: "image/jpeg",
  model: "claude-sonnet-4-5",
  name: "Ada",
  newSessionId: "6a10",
  oldSessionId: "5d3f",
  outputTail: "done\n",
  path: "notes/today.md",
  platform: "linux-x64",
  prompt: "Read HEARTBEAT.md and do what it says is due.",
  provider: "anthropic",
  qrDataUrl: "data:image/png;base64,aGVsbG8=",
  r2Key: "media/agent%3Amain%3Acli%3Adm%3Amain/1.jpg",
  reason: "node.offline",
  response: "Started a fresh conversation.",
  role: "assistant",
  senderId: "+31612345678",
  sessionId: "5d3f",
  sessionKey: "agent:main:cli:dm:main",
  start: "08:00",
  systemPrompt: "Be brief.",
  text: "It is sunny.",
  timezone: "Europe/Amsterdam",
  token: "gsv_client_k3v9x2_EXAMPLE",
  tool: "laptop__Bash",
  url: "https://example.org/photo.jpg",
  userTimezone: "Europe/Amsterdam",
  version: "0.1.0",
};
const BY_FIELD_NUMBER: Readonly<Record<string, number>> = {
  code: 480,
  lat: 52.37,
  lon: 4.9,
  costUsd: 0.0125,
  durationMs: 1250,
  timeoutMs: 60000,
  minProtocol: 1,
  maxProtocol: 1,
  protocol: 1,
  size: 4096,
  count: 1,
};
const BY_FIELD_JSON: Readonly<Record<string, unknown>> = {
  args: { command: "ls -la" },
  params: { sessionKey: "agent:main:cli:dm:main", message: "hello" },
  payload: { runId: "run-5e0c1b", queued: false },
  inputSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  content: { type: "text", text: "It is sunny." },
  details: { nodeId: "laptop" },
  value: "claude-sonnet-4-5",
};
const EXAMPLE_TIME = 1764576000000;
/** No example exceeds a larger limit than this: the file would be too large. */
const LONGEST_EXAMPLE = 2048;
const LARGEST_LIST = 64;

const clamp = (value: number, minimum: number, maximum: number): number => Math.min(Math.max(value, minimum), maximum);

function sampleString(node: Extract<Node, { kind: "string" }>, field: string, type: string | undefined, owner: string | undefined): string {
  const wished = (type === undefined ? undefined : BY_TYPE[type]) ?? BY_PLACE[`${owner ?? ""}.${field}`] ?? BY_FIELD[field] ?? "example";
  const fits = (text: string): boolean =>
    text.length >= (node.minLength ?? 0) &&
    text.length <= (node.maxLength ?? Number.POSITIVE_INFINITY) &&
    (node.pattern === undefined || new RegExp(node.pattern, "u").test(text));
  const candidates = [wished, wished.slice(0, node.maxLength), "example", "https://example.org", "a", "1".repeat(node.minLength ?? 1)];
  const text = candidates.find(fits);
  if (text === undefined) throw new ContractError(`no example string fits ${type ?? field}; add one to scripts/codegen/samples.ts`);
  return text;
}

function sampleNode(model: Model, node: Node, field: string, mode: Mode, path: readonly string[]): unknown {
  switch (node.kind) {
    case "ref": {
      const type = model.typeByName.get(node.name);
      if (!type) throw new ContractError(`there is no type ${node.name}`);
      return sample(model, type, path.includes(node.name) ? "minimal" : mode, field, path);
    }
    case "string":
      return sampleString(node, field, undefined, path.at(-1));
    case "integer":
      if (/(At|timestamp)$/.test(field) && node.maximum >= EXAMPLE_TIME) return EXAMPLE_TIME;
      return clamp(Math.round(BY_FIELD_NUMBER[field] ?? 3), node.minimum, node.maximum);
    case "number":
      return clamp(BY_FIELD_NUMBER[field] ?? 0.5, node.minimum ?? Number.NEGATIVE_INFINITY, node.maximum ?? Number.POSITIVE_INFINITY);
    case "boolean":
      return true;
    case "literal":
      return node.value;
    case "json":
      return BY_FIELD_JSON[field] ?? { note: "any JSON" };
    case "array":
      return mode === "minimal" || node.maxItems === 0 ? [] : [sampleNode(model, node.items, field, mode, path)];
    case "map": {
      if (mode === "minimal") return {};
      const whole = BY_FIELD_JSON[field];
      if (node.values.kind === "json" && typeof whole === "object") return whole;
      return { example: sampleNode(model, node.values, field, mode, path) };
    }
  }
}

const sampleFields = (model: Model, fields: readonly Field[], mode: Mode, path: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(
    fields
      .filter((field) => mode === "full" || field.required)
      .map((field) => [field.name, sampleNode(model, field.node, field.name, mode, path)]),
  );

const sampleArm = (model: Model, tag: string, arm: Arm, mode: Mode, path: readonly string[]): Record<string, unknown> => ({
  [tag]: arm.value,
  ...sampleFields(model, arm.fields, mode, path),
});

/** One valid value. A union shows its first arm; recursion ends in the smallest value. */
export function sample(model: Model, type: TypeDef, mode: Mode, field = "", path: readonly string[] = []): unknown {
  const below = [...path, type.name];
  switch (type.kind) {
    case "newtype":
      return sampleString(type.node, field, type.name, path.at(-1));
    case "enum":
      return type.values[0];
    case "struct":
      return sampleFields(model, type.fields, mode, below);
    case "tagged": {
      const [arm] = type.arms;
      if (!arm) throw new ContractError(`${type.name} has no arms`);
      return sampleArm(model, type.tag, arm, mode, below);
    }
  }
}

/** A value of another kind. Never a list: serde reads a list as a struct without field names. */
const wrongKind = (model: Model, node: Node): unknown => {
  if (node.kind === "json") return undefined;
  const target = node.kind === "ref" ? model.typeByName.get(node.name) : undefined;
  const isString =
    node.kind === "string" ||
    (node.kind === "literal" && typeof node.value === "string") ||
    target?.kind === "newtype" ||
    target?.kind === "enum";
  return isString ? 7 : "not this";
};

/** A value just over a limit, when one exists that is small enough to keep as a file. */
function overLimit(model: Model, node: Node, field: string): unknown {
  const target = node.kind === "ref" ? model.typeByName.get(node.name) : undefined;
  const bounded = target?.kind === "newtype" ? target.node : node;
  if (bounded.kind === "string" && bounded.maxLength !== undefined && bounded.maxLength < LONGEST_EXAMPLE)
    return "x".repeat(bounded.maxLength + 1);
  if (bounded.kind === "integer") return bounded.maximum === Number.MAX_SAFE_INTEGER ? bounded.minimum - 1 : bounded.maximum + 1;
  if (bounded.kind === "number" && bounded.maximum !== undefined) return bounded.maximum + 1;
  if (bounded.kind === "number" && bounded.minimum !== undefined) return bounded.minimum - 1;
  if (bounded.kind === "literal" && typeof bounded.value === "boolean") return !bounded.value;
  if (bounded.kind === "array" && bounded.maxItems <= LARGEST_LIST)
    return Array.from({ length: bounded.maxItems + 1 }, () => sampleNode(model, bounded.items, field, "minimal", []));
  return undefined;
}

/** Values with one mistake each. `base` is valid; `where` follows the name of the field. */
function mistakes(model: Model, fields: readonly Field[], base: Readonly<Record<string, unknown>>, where = ""): Example[] {
  const found: Example[] = [];
  const add = (mistake: Mistake, field: Field | undefined, value: unknown): void => {
    if (field && value !== undefined) found.push(invalid(mistake, field.name + where, { ...base, [field.name]: value }));
  };
  const required = fields.find((field) => field.required);
  if (required) {
    const { [required.name]: _gone, ...rest } = base;
    found.push(invalid("missing", required.name + where, rest));
  }
  const typed = fields.find((field) => field.node.kind !== "json");
  if (typed) add("type", typed, wrongKind(model, typed.node));
  const optional = fields.find((field) => !field.required && field.node.kind !== "json");
  add("null", optional, optional ? null : undefined);
  const limited = fields.find((field) => overLimit(model, field.node, field.name) !== undefined);
  if (limited) add("bound", limited, overLimit(model, limited.node, limited.name));
  return found;
}

const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);

/** Every example of a type, valid ones first within each shape. */
export function examples(model: Model, type: TypeDef): Example[] {
  switch (type.kind) {
    case "newtype":
      return [valid("minimal", sample(model, type, "minimal")), invalid("type", "", 7), invalid("bound", "empty", "")];
    case "enum":
      return [
        ...type.values.map((value) => valid(value.replaceAll(/[^A-Za-z0-9_-]/g, "-"), value)),
        invalid("value", "", "no-such-value"),
        invalid("type", "", 7),
      ];
    case "struct": {
      const minimal = sampleFields(model, type.fields, "minimal", [type.name]);
      const full = sampleFields(model, type.fields, "full", [type.name]);
      return [
        valid("minimal", minimal),
        ...(same(minimal, full) ? [] : [valid("full", full)]),
        ...mistakes(model, type.fields, minimal),
        invalid("type", "", "not this"),
      ];
    }
    case "tagged": {
      const arms = type.arms.flatMap((arm) => {
        const minimal = sampleArm(model, type.tag, arm, "minimal", [type.name]);
        const full = sampleArm(model, type.tag, arm, "full", [type.name]);
        return [
          valid(`${arm.value}-minimal`, minimal),
          ...(same(minimal, full) ? [] : [valid(`${arm.value}-full`, full)]),
          ...mistakes(model, arm.fields, minimal, `-in-${arm.value}`),
        ];
      });
      const [first] = type.arms;
      const { [type.tag]: _tag, ...untagged } = first ? sampleArm(model, type.tag, first, "minimal", [type.name]) : {};
      return [...arms, invalid("tag", "unknown", { ...untagged, [type.tag]: "no-such-arm" }), invalid("tag", "missing", untagged)];
    }
  }
}
