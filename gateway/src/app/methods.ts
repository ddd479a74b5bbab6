/** Every method that is served, by name. `connect` is the handshake's and not here. */
import { type EventName, isMethodName, type MethodName } from "../../../protocol/gen/methods.ts";
import type { Handlers } from "./services.ts";
import { agentMethods } from "../features/agents/methods.ts";
import { archiveMethods } from "../features/sessions/archive-methods.ts";
import { auditMethods } from "../features/audit/methods.ts";
import { channelMethods } from "../features/channels/methods.ts";
import { chatMethods } from "../features/sessions/chat-methods.ts";
import { configMethods } from "../features/config/methods.ts";
import { nodeMethods } from "../features/nodes/node-methods.ts";
import { searchMethods } from "../features/search/methods.ts";
import { sessionMethods } from "../features/sessions/session-methods.ts";
import { skillMethods } from "../features/skills/methods.ts";
import { tokenMethods } from "../features/tokens/methods.ts";
import { toolMethods } from "../features/nodes/tool-methods.ts";
import { workspaceMethods } from "../features/workspace/methods.ts";

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
