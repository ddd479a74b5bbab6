/** What telling notifications needs. Types only. */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelsOutPort } from "../../ports/channels.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { NotifyPort, NotifyRowsPort } from "../../ports/notify.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

export type NotificationsPorts = NotifyPort &
  NotifyRowsPort &
  SessionsPort &
  ChannelsOutPort &
  NodesPort &
  Pick<KernelPorts, "arm" | "background" | "config" | "connections" | "ids" | "log" | "now"> & {
    readonly after: (ms: number, work: () => void) => void;
  };
