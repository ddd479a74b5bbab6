/** The pack for customer success of a B2B service: health, risk and next steps of accounts. Only what must be known before it is on. */
import { headerSecret, type PackDefinition } from "../../src/packs/pack.ts";

const URL_OF_SERVICE = /^(?:https:\/\/[a-z0-9.-]{1,200}(?::\d{1,5})?|http:\/\/(?:127\.0\.0\.1|localhost):\d{1,5})(?:\/[\w./-]{0,200})?$/i;

export const success: PackDefinition = {
  name: "success",
  doc: "Health, risk and next steps of the accounts of a B2B service.",
  settings: {
    accountsUrl: {
      doc: "The address of the service with the accounts, such as https://crm.example.com/api.",
      problem: (value) =>
        URL_OF_SERVICE.test(value) && !value.endsWith("/")
          ? undefined
          : `${JSON.stringify(value)} is not an https address, or one of this machine such as http://127.0.0.1:8080, without / at its end.`,
    },
  },
  secrets: { token: headerSecret("The bearer token of that service.") },
  load: async () => (await import("./success.lazy.ts")).content,
};
