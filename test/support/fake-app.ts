import type { App } from "../../src/sessions/app.ts";

type Fake<T> = T extends (...args: never[]) => unknown ? T : { readonly [K in keyof T]?: Fake<T[K]> };

/** An app with only these members. A function that uses any other member fails the test. */
export function fakeApp(members: { readonly [Member in keyof App]?: Fake<App[Member]> | object }): App {
  return members as unknown as App;
}
