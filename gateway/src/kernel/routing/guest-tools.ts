/**
 * Which machines' tools a conversation may see and call (promises X7, S8; gateway rules CH13, CH14). Pure. The owner's own has all.
 * Any other has none, but for those that the owner opened on its channel (`channels.{name}.guestTools`). Which of the gateway's own
 * tools guests have is said where those tools are defined (tools/), and no configuration widens it.
 */
import type { ChannelConfig, NodeEntry } from "../../../../protocol/gen/types.ts";
import type { RunContext, ToolBinding } from "../../ports/run-context.ts";
import type { SessionAddress } from "./session-keys.ts";
import { NATIVE, SEPARATOR } from "./tool-names.ts";

type Channels = Readonly<Record<string, ChannelConfig>> | undefined;
/** The channel of a conversation, where its name says one. Who is one person on several channels has none. */
const channelOf = (address: SessionAddress): string | undefined =>
  address.form === "channel" || address.form === "account" ? address.channel : undefined;

/** Whether others than the owner may use this tool of a machine, by its full name, in a conversation with this address. */
export function isOpenedFor(address: SessionAddress, channels: Channels): (tool: string) => boolean {
  const channel = channelOf(address);
  const patterns =
    channel === undefined || channels === undefined || !Object.hasOwn(channels, channel) ? [] : (channels[channel]?.guestTools ?? []);
  return (tool) => tool.includes(SEPARATOR) && !isNative(tool) && patterns.some((pattern) => matches(pattern, tool));
}
const isNative = (tool: string): boolean => tool.toLowerCase().startsWith(NATIVE + SEPARATOR);

/** `*` stands for any characters, all others for themselves. Linear in both lengths for each star. */
export function matches(pattern: string, name: string): boolean {
  const parts = pattern.split("*");
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  const end = name.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** What is wrong with an entry of `guestTools`; undefined: nothing. */
export function guestToolProblem(pattern: string): string | undefined {
  const shown = JSON.stringify(pattern.slice(0, 64));
  if (isNative(pattern))
    return `${shown} can't be opened to guests: the gateway's own tools for files, memory, messages and settings are the owner's only.`;
  if (!/^[A-Za-z0-9_.*-]+$/.test(pattern) || !(pattern.includes(SEPARATOR) || pattern.includes("*")))
    return `${shown} is no tool of a machine. Write machine__Tool, with * for any characters, such as laptop__Read or laptop__*.`;
  return undefined;
}

/** What a run of a conversation is given of the machines: those tools that it may use, and of machines nothing else. */
export function machinesFor(
  own: boolean,
  isOpened: (tool: string) => boolean,
  all: Pick<RunContext, "tools" | "nodes">,
): Pick<RunContext, "tools" | "nodes"> {
  if (own) return all;
  const tools = all.tools.filter(({ definition, nodeId }) => nodeId !== undefined && isOpened(definition.name));
  return { tools, nodes: all.nodes.flatMap((node) => opened(node, tools)) };
}
function opened(node: NodeEntry, tools: readonly ToolBinding[]): readonly NodeEntry[] {
  const names = node.tools.filter((tool) => tools.some(({ definition }) => definition.name === node.nodeId + SEPARATOR + tool));
  if (names.length === 0) return [];
  const toolCapabilities = Object.fromEntries(Object.entries(node.toolCapabilities).filter(([tool]) => names.includes(tool)));
  return [
    {
      nodeId: node.nodeId,
      online: node.online,
      tools: names,
      toolCapabilities,
      hostCapabilities: [...new Set(Object.values(toolCapabilities).flat())],
    },
  ];
}
