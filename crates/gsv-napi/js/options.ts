/** Reads what a program gives, which need not be TypeScript, and finds the folders of GSV. Opens no file. */
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { failure } from "./errors.ts";
import { RUST_TOOLS, type RustTool } from "./gen/contract.ts";
import type { Definition, Options } from "./gen/native.d.ts";

export interface NodeOptions {
  /** Name of this machine: the prefix of its tools. At most 64 letters, digits, `_`, `.` and `-`. */
  readonly id: string;
  /** Address of the gateway, such as `ws://127.0.0.1:8787`. */
  readonly url: string;
  /** A token of the kind `node` that is bound to `id`. */
  readonly token?: string;
  /** The folder of GSV's tools. They stay inside. */
  readonly workspace: string;
  /** A folder for this node alone: its ledger and its log. Two nodes can't share one. */
  readonly stateDir: string;
  /** GSV's own tools, such as Read. By default none. */
  readonly tools?: { readonly rust?: "all" | "none" | readonly RustTool[] };
  /** GSV's tools for files may leave the workspace. */
  readonly allowOutside?: boolean;
  /** Path of the program `gsv` of this version, which runs commands in the sandbox of `node.toml`. Without it they have no sandbox. */
  readonly program?: string;
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type Block =
  | { readonly type: "text"; readonly text: string }
  /** `data` is base64. */
  | { readonly type: "image"; readonly data: string; readonly mimeType: string };
/** A text, any JSON, or blocks. `undefined` stands for `null`. */
export type ToolResult = Json | { readonly content: readonly Block[] } | undefined;

export interface ToolContext {
  /** Unique; the same for a call that is asked for again. */
  readonly callId: string;
  /** Fires when the call is cancelled, at its deadline, and when the node closes. The function then has two seconds to end. */
  readonly signal: AbortSignal;
  /** Shows live output. Best effort. */
  readonly progress: (text: string) => void;
}

export interface Tool<Args = Record<string, Json>> {
  /** At most 128 letters, digits, `_`, `.` and `-`, the first a letter, without `__`. */
  readonly name: string;
  /** For the model: what the tool does, and when to use it. */
  readonly description: string;
  /** JSON Schema of an object. Arguments that do not fit never reach `run`. */
  readonly inputSchema: { readonly type: "object"; readonly [keyword: string]: unknown };
  /** A call may run again when its outcome is not known. By default false: a call starts at most once. */
  readonly idempotent?: boolean;
  /** In place of the gateway's limit for a call. */
  readonly timeoutMs?: number;
  readonly run: (args: Args, context: ToolContext) => ToolResult | Promise<ToolResult>;
}

const bad = (message: string): never => {
  throw failure("node.bad_options", message, "The README of @gsv/node lists the options.");
};
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A misspelt option must not be taken for an absent one. */
function onlyKnown(given: Readonly<Record<string, unknown>>, known: readonly string[], where: string): void {
  const other = Object.keys(given).find((name) => !known.includes(name));
  if (other !== undefined) bad(`${where} has no option \`${other}\`; there are ${known.join(", ")}.`);
}

function text(given: Readonly<Record<string, unknown>>, name: string): string {
  const value = given[name];
  return typeof value === "string" && value !== "" ? value : bad(`The option \`${name}\` must be a text.`);
}

function absolutePath(given: Readonly<Record<string, unknown>>, name: string): string {
  const path = text(given, name);
  return isAbsolute(path) ? resolve(path) : bad(`The option \`${name}\` must be an absolute path, such as "/home/me/work".`);
}

/** GSV's folders as `gsv` finds them. `private`: what decides who may use this machine, so no tool reaches it. */
function gsvFolders(env: NodeJS.ProcessEnv): Pick<Options, "home" | "configDir" | "cacheDir" | "private"> {
  const from = (name: string): string | undefined => (env[name] === "" ? undefined : env[name]);
  const home = homedir();
  const xdg = (name: string, folder: string): string => {
    const given = from(name);
    return join(given !== undefined && isAbsolute(given) ? given : join(home, folder), "gsv");
  };
  const configDir = resolve(from("GSV_CONFIG_DIR") ?? xdg("XDG_CONFIG_HOME", ".config"));
  const state = resolve(from("GSV_HOME") ?? join(home, ".gsv"));
  return { home, configDir, cacheDir: xdg("XDG_CACHE_HOME", ".cache"), private: [state, configDir] };
}

function rustTools(tools: unknown): string[] | undefined {
  if (tools === undefined) return [];
  if (!isObject(tools)) return bad("The option `tools` must be an object.");
  onlyKnown(tools, ["rust"], "`tools`");
  const { rust = "none" } = tools;
  if (rust === "all") return undefined;
  if (rust === "none") return [];
  if (!Array.isArray(rust)) return bad('`tools.rust` must be "all", "none" or a list of names.');
  const other: unknown = rust.find((name) => !RUST_TOOLS.includes(name as RustTool));
  if (other !== undefined) bad(`GSV has no tool ${JSON.stringify(other)}; it has ${RUST_TOOLS.join(", ")}.`);
  return rust as string[];
}

/** @internal */
export function readOptions(given: unknown): Options {
  if (!isObject(given)) return bad("The options must be an object.");
  onlyKnown(given, ["id", "url", "token", "workspace", "stateDir", "tools", "allowOutside", "program"], "Node");
  const { token, allowOutside = false } = given;
  if (typeof allowOutside !== "boolean") bad("The option `allowOutside` must be true or false.");
  if (token !== undefined && (typeof token !== "string" || token === "")) bad("The option `token` must be a text.");
  const only = rustTools(given["tools"]);
  return {
    id: text(given, "id"),
    url: text(given, "url"),
    workspace: absolutePath(given, "workspace"),
    stateDir: absolutePath(given, "stateDir"),
    ...gsvFolders(process.env),
    allowOutside: allowOutside as boolean,
    ...(only === undefined ? {} : { only }),
    ...(given["program"] === undefined ? {} : { program: absolutePath(given, "program") }),
    ...(token === undefined ? {} : { token: token as string }),
  };
}

const TOOL_KEYS = ["name", "description", "inputSchema", "idempotent", "timeoutMs", "run"];

/** @internal */
export function readTool(given: unknown): { readonly definition: Definition; readonly run: Tool["run"] } {
  const refuse = (problem: string): never => {
    throw failure("node.bad_tool", `The tool can't be offered: ${problem}.`, "The README of @gsv/node shows a tool.");
  };
  if (!isObject(given)) return refuse("it must be an object");
  const other = Object.keys(given).find((key) => !TOOL_KEYS.includes(key));
  if (other !== undefined) refuse(`a tool has no \`${other}\`; it has ${TOOL_KEYS.join(", ")}`);
  const { name, description, inputSchema, idempotent = false, timeoutMs, run } = given;
  if (typeof name !== "string") return refuse("its name must be a text");
  if (typeof description !== "string" || description.trim() === "") return refuse("its description must be a text");
  if (typeof idempotent !== "boolean") return refuse("`idempotent` must be true or false");
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && Number.isInteger(timeoutMs) && timeoutMs > 0))
    return refuse("`timeoutMs` must be a whole number of milliseconds");
  if (typeof run !== "function") return refuse("`run` must be a function");
  let schema: string | undefined;
  try {
    schema = JSON.stringify(inputSchema);
  } catch {
    // Circular: refused like anything else that is not JSON.
  }
  if (schema === undefined) return refuse("its input schema must be JSON");
  // What is larger is too large as well.
  const limited = timeoutMs === undefined ? {} : { timeoutMs: Math.min(timeoutMs, 0xffff_ffff) };
  return { definition: { name, description, inputSchema: schema, idempotent, ...limited }, run: run as Tool["run"] };
}
