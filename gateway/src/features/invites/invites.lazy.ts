/** What makes and exchanges invitations. A part of its own, which is loaded with the first one. */
export { Invites } from "./invites.ts";
