/** The hosts that a command of a sandbox asks for (rule SB17). PURE. The machine reads them again, strictly, and has the last word. */
import type { SandboxProfile } from "../../../protocol/gen/types.ts";

/** Arguments of Bash: what a call asks of the sandbox, and the hosts that it names. */
export const SANDBOX = "sandbox";
export const HOSTS = "hosts";
/** Tools whose programs the sandbox of their machine confines. Another tool that runs programs may run them anywhere. */
export const SANDBOXED_TOOLS: ReadonlySet<string> = new Set(["Bash", "Process"]);
export const WITH_HOSTS = "workspace+net";
const READ_ONLY = "read-only";
const MAX_HOSTS = 20;
/** Characters of all names together. */
const MAX_HOST_CHARS = 1000;
const HOST = /^(\[[0-9a-f:.]{2,45}\]|[^:[\]]{1,256})(?::([0-9]{1,8}))?$/;
const ADDRESS = /^\[|^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}$/;
/** Resolvers read `127.1` and `0x7f000001` as addresses. */
const NUMBER = /^(?:[0-9]+$|0x)/;

const own = (args: Readonly<Record<string, unknown>>, name: string): unknown => (Object.hasOwn(args, name) ? args[name] : undefined);
/** The call is about a command in the sandbox with hosts. */
export const isWithHosts = (args: Readonly<Record<string, unknown>>): boolean => own(args, SANDBOX) === WITH_HOSTS;
/** The call is about a command outside the sandbox. */
export const isOutside = (args: Readonly<Record<string, unknown>>): boolean => own(args, SANDBOX) === "off";
/** The call is about a command that changes nothing (rule SB21). A machine without a sandbox refuses it. */
export const isReadOnly = (args: Readonly<Record<string, unknown>>): boolean => own(args, SANDBOX) === READ_ONLY;

/** What the machine has reported: its commands run in a sandbox. */
export const hasSandbox = (sandbox: SandboxProfile | undefined): boolean => sandbox !== undefined && sandbox !== "off";
const takesHosts = (sandbox: SandboxProfile | undefined): boolean => sandbox === "workspace" || sandbox === "workspace+net";

/** Why no machine takes a call that asks for hosts: no one is asked about it (rule AP17). Undefined: it names them, or asks for none. */
export function withoutHosts(args: Readonly<Record<string, unknown>>, sandbox: SandboxProfile | undefined): string | undefined {
  if (Object.hasOwn(args, SANDBOX) && typeof args[SANDBOX] !== "string")
    return `Not run: \`${SANDBOX}\` is a text. Make the call again without it, or with one of the values that the tool names.`;
  // A question shows all of them.
  if (Array.isArray(args[HOSTS]) && args[HOSTS].join("").length > MAX_HOST_CHARS)
    return `Not run: the names in \`hosts\` have more than ${MAX_HOST_CHARS} characters together. Make the call again with fewer or shorter ones.`;
  if (Object.hasOwn(args, HOSTS) && !isWithHosts(args))
    return `Not run: \`hosts\` needs \`sandbox\` set to \`${WITH_HOSTS}\`. Make the call again with both, or without \`hosts\`.`;
  if (!isWithHosts(args) || !takesHosts(sandbox) || askedHosts(args, sandbox) !== undefined) return undefined;
  return `Not run: with \`sandbox\` set to \`${WITH_HOSTS}\` the command reaches the hosts that \`hosts\` names: a list of 1 to ${MAX_HOSTS} such as ["example.org"], where \`*.\` stands before at least two parts. Make the call again with them.`;
}

/** A host as the node writes it (`HostRule` of gsv-sandbox has the same rules). Undefined: the node refuses it. */
function hostOf(text: string): string | undefined {
  const [, host = "", digits] = HOST.exec(text.toLowerCase()) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (host === "" || (port !== undefined && (port < 1 || port > 65_535))) return undefined;
  const end = port === undefined ? "" : `:${port}`;
  if (host.startsWith("[")) return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname + end : undefined;
  if (ADDRESS.test(host)) return host + end;
  const star = host.startsWith("*.") ? "*." : "";
  const name = host.slice(star.length).replace(/\.$/, "");
  const labels = name.split(".");
  const isName = name.length <= 253 && labels.every((label) => LABEL.test(label)) && !NUMBER.test(labels.at(-1) ?? "");
  return isName && (star === "" || labels.length > 1) ? star + name + end : undefined;
}
/** Hosts of `askedHosts` that only the owner of the machine can list, and has not: addresses, and the machine itself. */
export function notListed(asked: readonly string[], listed: readonly string[]): readonly string[] {
  const known = listed.map((entry) => hostOf(entry) ?? entry);
  const ports = new Set(known.filter((entry) => LOOPBACK.test(nameOf(entry))).map(portOf));
  return asked.filter((host) => {
    const isLocal = LOCALHOST.test(nameOf(host));
    return (isLocal || ADDRESS.test(nameOf(host))) && !known.includes(host) && !(isLocal && ports.has(portOf(host)));
  });
}
/** What resolvers read as the loopback. */
const LOCALHOST = /^(?:.*\.)?localhost$/;
/** Names of a machine for itself. */
const LOOPBACK = /^(?:localhost|127\..*|\[::1\])$/;
const nameOf = (host: string): string => HOST.exec(host)?.[1] ?? host;
const portOf = (host: string): string => HOST.exec(host)?.[2] ?? "";
/** Sorted, each once, in lower case. Undefined: the call asks for none, or in a way that no machine takes. */
export function askedHosts(args: Readonly<Record<string, unknown>>, sandbox: SandboxProfile | undefined): readonly string[] | undefined {
  // In the other profiles there is nothing to let through.
  if (!isWithHosts(args) || !takesHosts(sandbox)) return undefined;
  const hosts = own(args, HOSTS);
  if (!Array.isArray(hosts) || hosts.length === 0 || hosts.length > MAX_HOSTS) return undefined;
  const names = hosts.map((host: unknown) => (typeof host === "string" ? hostOf(host) : undefined));
  return names.every((name) => name !== undefined) ? [...new Set(names)].sort() : undefined;
}
