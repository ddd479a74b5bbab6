/** Puts the guard on this isolate's console. A module of its own, because what matters is that it runs before the libraries load. */
import { guard } from "./console-guard.ts";

guard(console);
