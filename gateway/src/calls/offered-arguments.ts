/** Whether a call is one that its tool offers. PURE. The owner is not asked about a call that is refused in any case. */
import type { NodeSandbox, SandboxProfile } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { HOSTS, hasSandbox, SANDBOX } from "../policy/hosts.ts";

interface Offered {
  readonly name: string;
  /** As its machine or the gateway describes the tool. */
  readonly schema: unknown;
  readonly args: Readonly<Record<string, unknown>>;
  /** What the machine has reported; undefined for a tool of the gateway. */
  readonly sandbox: SandboxProfile | undefined;
  readonly tier?: NodeSandbox["tier"];
}

/** What the model is told. Undefined: the tool offers such a call. */
export function notOffered({ name, schema, args, sandbox, tier }: Offered): string | undefined {
  if (!isJsonObject(schema)) return undefined;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const missing = required.filter((one): one is string => typeof one === "string" && !Object.hasOwn(args, one));
  if (missing.length > 0)
    return `Not run: ${name} needs ${missing.map((one) => `\`${one}\``).join(", ")}. Make the call again with all of them.`;
  const properties = schema["properties"];
  const value = Object.hasOwn(args, SANDBOX) ? args[SANDBOX] : undefined;
  if (sandbox === "off" && (value === "workspace+net" || value === "read-only"))
    return `Not run: this machine has no sandbox, so \`${SANDBOX}\` can't be \`${value}\` there. Make the call again without \`${SANDBOX}\` and \`${HOSTS}\`.`;
  // A machine without a sandbox takes `off` and offers none; of one that describes no argument nothing is known.
  if (typeof value !== "string" || value === "read-only" || !hasSandbox(sandbox)) return undefined;
  if (!isJsonObject(properties) || Object.keys(properties).length === 0) return undefined;
  const offered = isJsonObject(properties[SANDBOX]) ? properties[SANDBOX]["enum"] : undefined;
  if (Array.isArray(offered) && offered.includes(value)) return undefined;
  if (value !== "off" && value !== "workspace+net")
    return `Not run: ${name} takes no \`${SANDBOX}\` of \`${value.slice(0, 64)}\`. Make the call again without it${Array.isArray(offered) ? `, or with ${offered.join(" or ")}` : ""}.`;
  // Bubblewrap can let single hosts through, so it is the owner who lets none through. A command outside would reach every host.
  if (value === "workspace+net" && tier === "bubblewrap" && sandbox !== "strict" && Array.isArray(offered))
    return `Not run: the owner of the machine lets commands reach no hosts. Do it without the network, or ask the user to change \`network = "none"\` in node.toml there and to start the node again.`;
  // With Landlock alone no single host can be let through.
  const isOffOffered = value === "workspace+net" && Array.isArray(offered) && offered.includes("off");
  const instead = isOffOffered
    ? `For a command that needs the network, set \`${SANDBOX}\` to \`off\` and leave \`hosts\` out, which the user is asked about.`
    : `Make the call without it, or tell the user; \`gsv node sandbox\` on that machine tells why.`;
  const why =
    value === "off"
      ? "the owner of the machine lets no command leave its sandbox"
      : "the sandbox of the machine lets no command ask for hosts";
  return `Not run: ${why}, so \`${SANDBOX}\` can't be \`${value}\` there. ${instead}`;
}
