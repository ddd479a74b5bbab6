/** Invitations: other machines exchange a one-time secret for a token of their own (gateway/spec/remote.md, RM7 to RM9). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { FailureWindow } from "../../kernel/limits.ts";
import type { JoinPort } from "../../ports/http.ts";
import type { InvitePorts, Invites } from "./invites.ts";
import { INVITE_MIGRATIONS } from "./migrations.ts";

export const invitesFeature: FeatureDefinition<InvitePorts, { readonly joinRpc: JoinPort }> = {
  name: "invites",
  migrations: INVITE_MIGRATIONS,
  create(ports) {
    const failures = new FailureWindow(LIMITS.joinFailuresPerMinute);
    let loaded: Promise<Invites> | undefined;
    const load = (): Promise<Invites> => {
      loaded ??= import("./invites.lazy.ts").then(({ Invites }) => new Invites({ ...ports, failures }));
      // A part that could not be loaded is tried again with the next call.
      loaded.catch(() => {
        loaded = undefined;
      });
      return loaded;
    };
    return {
      offers: { joinRpc: { join: async (request, address) => (await load()).join(request, address) } },
      methods: { "invite.create": async ({ now }, params) => (await load()).create(now, params) },
    };
  },
};
