/** Every method that is served, by name. `connect` is the handshake's and not here. */
import { type EventName, isMethodName, type MethodName } from "../../../../protocol/gen/methods.ts";
import type { Handlers } from "../services.ts";
import { agentMethods } from "./agent.ts";
import { archiveMethods } from "./archives.ts";
import { auditMethods } from "./audit.ts";
import { channelMethods } from "./channel.ts";
import { chatMethods } from "./chat.ts";
import { configMethods } from "./config.ts";
import { nodeMethods } from "./node.ts";
import { searchMethods } from "./search.ts";
import { sessionMethods } from "./session.ts";
import { skillMethods } from "./skill.ts";
import { tokenMethods } from "./token.ts";
import { toolMethods } from "./tool.ts";
import { workspaceMethods } from "./workspace.ts";

export const HANDLERS: Handlers = {
  ...chatMethods,
  ...sessionMethods,
  ...configMethods,
  ...toolMethods,
  ...nodeMethods,
  ...workspaceMethods,
  ...archiveMethods,
  ...agentMethods,
  ...tokenMethods,
  ...skillMethods,
  ...auditMethods,
  ...channelMethods,
  ...searchMethods,
};

/** Only answered to say where channels hand over their messages. */
const NOT_ADVERTISED: ReadonlySet<MethodName> = new Set<MethodName>(["channel.inbound"]);
/** What hello-ok may list. */
export const ADVERTISED: readonly MethodName[] = Object.keys(HANDLERS)
  .filter(isMethodName)
  .filter((name) => !NOT_ADVERTISED.has(name));
/** Events of methods that are not served. */
export const UNSERVED_EVENTS: readonly EventName[] = ["transfer.send", "transfer.start", "transfer.receive", "transfer.end"];
