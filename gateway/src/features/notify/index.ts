/**
 * What the owner should know (gateway/spec/notifications.md). Two parts: `notifyFeature` takes notifications and stands before the
 * features that tell something; `notificationsFeature` tells them, and needs channels and machines.
 */
import { afterTimeout } from "../../../../protocol/runtime/within.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { NotifyPort, NotifyRowsPort } from "../../ports/notify.ts";
import { succeed } from "../../ports/result.ts";
import { Desktops } from "./desktops.ts";
import { notificationMethods } from "./methods.ts";
import { NOTIFY_MIGRATIONS } from "./migrations.ts";
import { NotifyStore } from "./store.ts";
import type { NotificationsPorts } from "./ports.ts";
import { Teller } from "./teller.ts";

type TakerPorts = Pick<KernelPorts, "config" | "database" | "now" | "scrub">;
const MAX_TEXT = 4_000;
const MAX_CAUSE = 256;
/** Deliveries of notifications have ids that are made from the row (teller.ts). */
const OF_NOTIFICATION = /^msg:notify\/(\d+)\/\d+$/;

export const notifyFeature: FeatureDefinition<TakerPorts, NotifyPort & NotifyRowsPort> = {
  name: "notify",
  migrations: NOTIFY_MIGRATIONS,
  create({ config, database, now, scrub }) {
    const store = new NotifyStore(database, scrub);
    let wake: (id: number) => void = () => undefined;
    return {
      offers: {
        notify: {
          tell(tell) {
            const agentId = tell.agentId !== undefined && config.hasAgent(tell.agentId) ? tell.agentId : config.defaultAgentId();
            const text = scrub(tell.text).toWellFormed().slice(0, MAX_TEXT);
            const id = store.add({ ...tell, agentId, text, cause: tell.cause.slice(0, MAX_CAUSE) }, now());
            if (id !== undefined) wake(id);
            return id;
          },
          over: (key) => store.over(key, now()),
          bounced(deliveryId, error) {
            const [, id] = OF_NOTIFICATION.exec(deliveryId) ?? [];
            if (id === undefined) return false;
            const row = store.find(Number(id));
            if (row === undefined) return true;
            // The report may come before the telling has ended.
            store.failed(row.id, row.toldIn ?? row.body.asked ?? "last", error);
            if (row.state === "told") {
              store.again(row.id, now());
              wake(row.id);
            }
            return true;
          },
        },
        notifyRows: Object.assign(store, {
          onTaken(listener: (id: number) => void) {
            wake = listener;
          },
        }),
      },
    };
  },
};

export const notificationsFeature: FeatureDefinition<NotificationsPorts, object> = {
  name: "notifications",
  create(ports) {
    const { arm, background, connections, notifyRows } = ports;
    const desktops = new Desktops({ connections, nodes: ports.nodes, after: ports.after });
    const teller = new Teller({ ...ports, desktops, timer: afterTimeout });
    notifyRows.onTaken(() => {
      // After the transaction of the caller. The alarm stands for what is killed here.
      background(
        "tell_notification",
        Promise.resolve().then(() => {
          arm();
          teller.start();
        }),
      );
    });
    return {
      offers: {},
      methods: {
        ...notificationMethods({ ...ports, desktops, teller }),
        "notify.shown": ({ connection: { principal } }, { showId, problem }) =>
          succeed(desktops.answered(principal.id, showId, problem) ? { ok: true } : { ok: true, dropped: true }),
      },
      gone: ({ principal }) => desktops.gone(principal.id),
      alarms: [{ name: "notifications", next: () => teller.next(), run: () => teller.start() }],
    };
  },
};
