/** Invitations: other machines exchange a one-time secret for a token of their own (gateway/spec/remote.md, RM7 to RM9). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { FailureWindow } from "../../kernel/limits.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import type { JoinPort } from "../../ports/http.ts";
import type { InvitePorts } from "./invites.ts";
import { INVITE_MIGRATIONS } from "./migrations.ts";

export const invitesFeature: FeatureDefinition<InvitePorts, { readonly joinRpc: JoinPort }> = {
  name: "invites",
  migrations: INVITE_MIGRATIONS,
  create(ports) {
    const failures = new FailureWindow(LIMITS.joinFailuresPerMinute);
    const load = once(() => import("./invites.lazy.ts").then(({ Invites }) => new Invites({ ...ports, failures })));
    return {
      offers: { joinRpc: { join: async (request, address) => (await load()).join(request, address) } },
      methods: {
        "invite.create": async ({ now }, params) => (await load()).create(now, params),
        "invite.list": async ({ now }) => (await load()).list(now),
        "invite.revoke": async ({ now }, params) => (await load()).revoke(now, params),
      },
    };
  },
};
