/** The two ends of a transfer, as people and models write them: `NODE:PATH` and `gsv:PATH`; as programs write their own: `@:PATH`. PURE. */
import { type Failure, failure, type Result } from "../../ports/result.ts";
import { parsePath, type WorkspacePath } from "../../storage/keys.ts";
import { receiveProblem } from "../../storage/workspace/protection.ts";
import { isMachineName } from "../../tools/registry.ts";

export type Endpoint =
  | { readonly kind: "workspace"; readonly path: WorkspacePath }
  | { readonly kind: "node"; readonly nodeId: string; readonly path: string }
  /** The program that asks: a file of the machine that it runs on. */
  | { readonly kind: "client"; readonly path: string };

const WORKSPACE = "gsv";
const CLIENT = "@";
const ENDPOINT = /^([^:]{1,64}):([^\0]{1,4096})$/s;

export function parseEndpoint(text: string): Result<Endpoint> {
  const [, name, path] = ENDPOINT.exec(text) ?? [];
  if (name === undefined || path === undefined || (name !== CLIENT && !isMachineName(name)))
    return {
      ok: false,
      error: {
        reason: "transfer.bad_endpoint",
        message: `\`${text.slice(0, 200)}\` names no machine and not the workspace.`,
        hint: "Write NODE:PATH for a machine and gsv:PATH for the workspace: `gsv cp laptop:report.pdf gsv:report.pdf`.",
      },
    };
  if (name === CLIENT) return { ok: true, value: { kind: "client", path } };
  if (name !== WORKSPACE) return { ok: true, value: { kind: "node", nodeId: name, path } };
  const parsed = parsePath(path.startsWith("/") ? path.slice(1) : path);
  return parsed.ok ? { ok: true, value: { kind: "workspace", path: parsed.value } } : parsed;
}

const isKind = (text: string, kind: Endpoint["kind"]): boolean => {
  const endpoint = parseEndpoint(text);
  return endpoint.ok && endpoint.value.kind === kind;
};
/** Whether a program is this end. */
export const isOfClient = (text: string): boolean => isKind(text, "client");
export const isInWorkspace = (text: string): boolean => isKind(text, "workspace");

/** Why a file can't be copied from one end to the other. */
export function pairProblem(source: Endpoint, destination: Endpoint): string | undefined {
  if (source.kind === "workspace" && destination.kind === "workspace")
    return "Both ends are in the workspace, and a transfer copies between machines and the workspace.";
  if (source.kind === "client" && destination.kind === "client") return "Both ends are on this machine.";
  if (source.kind === "node" && destination.kind === "node" && source.nodeId === destination.nodeId)
    return `Both ends are on \`${source.nodeId}\`, which can copy its files by itself.`;
  return undefined;
}

export interface Ends {
  readonly from: Endpoint;
  readonly to: Endpoint;
}
/** Both ends, when a file can be copied from one to the other. */
export function parseEnds(source: string, destination: string): Result<Ends> {
  const [from, to] = [parseEndpoint(source), parseEndpoint(destination)];
  if (!from.ok) return from;
  if (!to.ok) return to;
  const pair = pairProblem(from.value, to.value);
  if (pair !== undefined) return failure("transfer.bad_endpoint", pair, "`gsv cp --help` shows what can be copied.");
  return { ok: true, value: { from: from.value, to: to.value } };
}
/** Why an agent has no part in a copy with these ends. */
export function clientProblem({ from, to }: Ends): Failure | undefined {
  if (from.kind !== "client" && to.kind !== "client") return undefined;
  return failure("transfer.bad_endpoint", "An agent has no files of its own machine.", "Write NODE:PATH or gsv:PATH.");
}
/** Why a copy that an agent asks for is refused in any case (rule AP17). */
export function copyRefusal(agentId: string, source: string, destination: string): Failure | undefined {
  const ends = parseEnds(source, destination);
  if (!ends.ok) return ends;
  const { to } = ends.value;
  return clientProblem(ends.value) ?? (to.kind === "workspace" ? receiveProblem(agentId, to.path) : undefined);
}
