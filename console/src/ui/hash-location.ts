import { useSyncExternalStore } from "react";

/**
 * wouter's hash location puts the query before the fragment. Later pages then keep the query, and a link opened in a
 * new tab loses it. Here, the query is part of the fragment: `#/s/main/tree?entry=7`.
 */
function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  addEventListener("popstate", changed);
  return () => {
    removeEventListener("hashchange", changed);
    removeEventListener("popstate", changed);
  };
}

/**
 * wouter decodes its input once, and the pages decode it again. An encoded "%", as in keys with an escape, must survive
 * both.
 */
function currentRoute(): readonly [path: string, query: string] {
  const route = location.hash.replace(/^#?\/?/, "/").replaceAll("%25", "%2525");
  const at = route.indexOf("?");
  return at < 0 ? [route, ""] : [route.slice(0, at), route.slice(at + 1)];
}

function navigate(
  to: string,
  { replace = false, state = null }: { replace?: boolean; state?: unknown } = {},
): void {
  const address = new URL(location.href);
  address.search = "";
  address.hash = to;
  history[replace ? "replaceState" : "pushState"](state, "", address);
  dispatchEvent(new Event("hashchange"));
}

export function useHashLocation(): [string, typeof navigate] {
  return [useSyncExternalStore(subscribe, () => currentRoute()[0]), navigate];
}
useHashLocation.hrefs = (href: string) => `#${href}`;
useHashLocation.searchHook = () => useSyncExternalStore(subscribe, () => currentRoute()[1]);
