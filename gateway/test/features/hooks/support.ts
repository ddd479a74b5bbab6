/** Hooks over real HTTP: a gateway with jobs, and services that send signed deliveries to it. */
import { expect } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { Hook, HookDelivery } from "../../../../protocol/gen/types.ts";
import { keyOf, sign } from "../../../src/features/hooks/signature.ts";
import { eventually, fetchWorker } from "../../support/gateway.ts";
import { alarm, type JobStage, jobStage } from "../schedule/support.ts";

export const RUN = { kind: "run", spec: { mode: "task", message: "An issue: {{body.title}}" } } as const;
type Added = ResultOf<"hook.add">;

export const post = (name: string, body: string, headers: Readonly<Record<string, string>>): Promise<Response> =>
  fetchWorker(`http://gsv.test/hooks/${name}`, { method: "POST", body, headers });
export async function status(response: Response): Promise<string> {
  const said = await response.json<{ status?: string; reason?: string }>();
  return `${response.status} ${said.reason ?? said.status}`;
}
export interface HookStage {
  readonly stage: JobStage;
  readonly calls: JobStage["calls"];
  readonly add: (more?: object) => Promise<Added>;
  /** A delivery as its service sends it. */
  readonly deliver: (secret: string, id: string, body?: unknown, form?: Hook["form"], name?: string) => Promise<string>;
  readonly show: (name?: string) => Promise<{ hook: Hook; deliveries: HookDelivery[] }>;
  /** Fires the alarm until so many deliveries have ended well. */
  readonly ends: (count: number, name?: string) => Promise<void>;
}
/** Call at the top of a test file: each test has a fresh gateway. */
export function hookStage(): HookStage {
  const stage = jobStage();
  const show: HookStage["show"] = (name = "gh") => stage.peer.ok("hook.show", { name });
  return {
    stage,
    calls: stage.calls,
    add: (more = {}) => stage.peer.ok<Added>("hook.add", { name: "gh", form: "standard", target: RUN, ...more }),
    async deliver(secret, id, body = { title: "Broken" }, form = "standard", name = "gh") {
      const text = JSON.stringify(body);
      const key = keyOf(form, secret);
      if (key === undefined) throw new Error("no key");
      return status(await post(name, text, sign(form, key, id, stage.now, text)));
    },
    show,
    ends: (count, name = "gh") =>
      eventually(async () => {
        await alarm();
        expect((await show(name)).deliveries.filter((one) => one.status === "ok")).toHaveLength(count);
      }),
  };
}
