/** Files of sessions: here only who may upload one over HTTP. Taking them in and showing them to models is the session's part. */
import type { Admission, Admitted, HttpCaller } from "../../kernel/admission.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type UploadAsked, type UploadPlace, type UploadPorts, Uploads } from "./uploads.ts";

export interface MediaPorts extends UploadPorts, Pick<KernelPorts, "now"> {
  readonly admission: Pick<Admission, "grant">;
}
/** What the Worker may call. */
export interface MediaRpc {
  /** Where an uploaded file goes, or why it may not be uploaded. */
  admitUpload(caller: HttpCaller, asked: UploadAsked): Promise<Admitted<UploadPlace>>;
}

export const mediaFeature: FeatureDefinition<MediaPorts, { readonly mediaRpc: MediaRpc }> = {
  name: "media",
  create(ports) {
    const uploads = new Uploads(ports);
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
