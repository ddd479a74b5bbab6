/** Hooks: other services wake the agent over HTTP (gateway/spec/hooks.md). */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { HookPort } from "../../ports/http.ts";
import { succeed } from "../../ports/result.ts";
import type { WokenJobsPort } from "../../ports/schedule.ts";
import type { StopPort } from "../../ports/sessions.ts";
import { HOOK_MIGRATIONS } from "./migrations.ts";
import { beginWaiting, nextBegin } from "./queue.ts";
import { HookSecrets } from "./secrets.ts";
import { HookStore } from "./store.ts";

export type HooksPorts = WokenJobsPort &
  StopPort &
  Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "database" | "ids" | "log" | "now" | "secretBox">;

export const hooksFeature: FeatureDefinition<HooksPorts, { readonly hooksRpc: HookPort }> = {
  name: "hooks",
  migrations: HOOK_MIGRATIONS,
  create(ports) {
    const store = new HookStore(ports.database);
    const secrets = new HookSecrets(store, ports.secretBox);
    secrets.start();
    const queue = { ...ports, store };
    const load = once(() =>
      import("./hooks.lazy.ts").then(({ Door, Hooks }) => {
        const door = new Door({ ...queue, secrets });
        return { door, hooks: new Hooks({ ...queue, secrets, door }) };
      }),
    );
    return {
      offers: {
        hooksRpc: {
          hook: async (request) => {
            const taken = await (await load()).door.take(request);
            if (taken.ok && taken.value === "accepted") ports.arm();
            return taken;
          },
        },
      },
      methods: {
        "hook.add": async (_caller, params) => (await load()).hooks.add(params),
        "hook.list": async () => succeed((await load()).hooks.list()),
        "hook.show": async (_caller, params) => (await load()).hooks.show(params),
        "hook.remove": async (_caller, { name }) => succeed((await load()).hooks.remove(name)),
        "hook.test": async (_caller, params) => (await load()).hooks.test(params),
      },
      alarms: [{ name: "hooks", next: () => nextBegin(queue), run: () => beginWaiting(queue) }],
    };
  },
};
