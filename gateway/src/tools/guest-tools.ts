/**
 * Which tools of machines a session of another person may use (promises X7, S8; gateway rules CH13, CH14): only those that the owner
 * opened on the session's channel (`channels.{name}.guestTools`). No configuration opens a native tool. PURE.
 */
import type { ChannelConfig, NodeEntry } from "../../../protocol/gen/types.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { SessionAddress } from "../ports/sessions.ts";
import type { ToolEntry } from "../ports/tool-entry.ts";
import { mayUse, NATIVE_PREFIX, SEPARATOR, type ToolAccess } from "./registry.ts";

type Channels = Readonly<Record<string, ChannelConfig>> | undefined;
/** The channel in the session's address. A session that links one person's channels has none. */
const channelOf = (address: SessionAddress): string | undefined =>
  address.form === "channel" || address.form === "account" ? address.channel : undefined;

/** Whether the owner opened a machine's tool, by its full name, to sessions with this address. */
export function isOpenedFor(address: SessionAddress, channels: Channels): (tool: string) => boolean {
  const channel = channelOf(address);
  const patterns =
    channel === undefined || channels === undefined || !Object.hasOwn(channels, channel) ? [] : (channels[channel]?.guestTools ?? []);
  return (tool) => tool.includes(SEPARATOR) && !isNative(tool) && patterns.some((pattern) => matches(pattern, tool));
}
const isNative = (tool: string): boolean => tool.toLowerCase().startsWith(NATIVE_PREFIX);

/** `*` stands for any characters, every other character for itself. Linear in both lengths for each star. */
export const matches = (pattern: string, name: string): boolean => matcherOf(pattern)(name);
/** The same for many names. */
export function matcherOf(pattern: string): (name: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (name) => name === first;
  return (name) => {
    if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
    const end = name.length - last.length;
    let at = first.length;
    for (const part of rest) {
      const found = name.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}

/** The problem of an entry of `guestTools`; undefined when there is none. */
export function guestToolProblem(pattern: string): string | undefined {
  const shown = JSON.stringify(pattern.slice(0, 64));
  if (isNative(pattern))
    return `${shown} can't be opened to guests: only the owner may use GSV's own tools for files, memory, messages and settings.`;
  if (!/^[A-Za-z0-9_.*-]+$/.test(pattern) || !(pattern.includes(SEPARATOR) || pattern.includes("*")))
    return `${shown} does not name a machine's tool. Write machine__Tool, with * for any characters, for example laptop__Read or laptop__*.`;
  return undefined;
}

/** The machines and tools that a run gets. Another person's session gets only its tools, and about a machine only what they need. */
export function machinesFor(access: ToolAccess, all: Pick<RunContext, "tools" | "nodes">): Pick<RunContext, "tools" | "nodes"> {
  if (access.isOwners) return all;
  const tools = all.tools.filter((entry) => mayUse(entry, access) && !entry.isAway);
  return { tools, nodes: all.nodes.flatMap((node) => opened(node, tools)) };
}
function opened(node: NodeEntry, tools: readonly ToolEntry[]): readonly NodeEntry[] {
  const own = tools.filter(({ target }) => target.kind === "node" && target.nodeId === node.nodeId).map(({ tool }) => tool);
  const names = node.tools.filter((tool) => own.includes(tool));
  if (names.length === 0) return [];
  const toolCapabilities = Object.fromEntries(Object.entries(node.toolCapabilities).filter(([tool]) => names.includes(tool)));
  return [
    {
      nodeId: node.nodeId,
      online: node.online,
      ...(node.returning === undefined ? {} : { returning: node.returning }),
      tools: names,
      toolCapabilities,
      hostCapabilities: [...new Set(Object.values(toolCapabilities).flat())],
    },
  ];
}
