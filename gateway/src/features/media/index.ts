/** Files of sessions: checks who may upload one over HTTP, and has the tool that sends files. Sessions store them and show them to models. */
import type { Admission } from "../../kernel/admission.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { HttpPort } from "../../ports/http.ts";
import { MEDIA_TOOLS } from "./tools.ts";
import { type UploadPorts, UploadAccess } from "./upload-access.ts";

export interface MediaPorts extends UploadPorts, Pick<KernelPorts, "now"> {
  readonly admission: Pick<Admission, "grant">;
}
export const mediaFeature: FeatureDefinition<MediaPorts, { readonly mediaRpc: Pick<HttpPort, "admitUpload"> }> = {
  name: "media",
  tools: MEDIA_TOOLS,
  create(ports) {
    const uploads = new UploadAccess(ports);
    return {
      offers: {
        mediaRpc: {
          async admitUpload(caller, asked) {
            const grant = await ports.admission.grant(caller);
            return grant.ok ? uploads.admit(grant.value, asked, ports.now()) : grant;
          },
        },
      },
    };
  },
};
