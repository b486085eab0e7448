import type { ElementType, Key, ReactElement, ReactNode } from "react";
import { jsxs as createMany, jsx as createOne, Fragment } from "react/jsx-runtime";
import { plainText } from "./plain-text.ts";

/**
 * The functions that JSX compiles to (`jsxImportSource` in tsconfig.json and vite.config.ts). They pass all text on the
 * page through `plainText`, so that no view can show names, labels and errors with invisible characters. Values of
 * fields stay as they are, because people edit and send them.
 */
export type { JSX } from "react";
export { Fragment };

type Props = Readonly<Record<string, unknown>>;

const textProps = [
  "title",
  "alt",
  "placeholder",
  "aria-label",
  "aria-description",
  "aria-valuetext",
] as const;

export function jsx(type: ElementType, props: Props, key?: Key): ReactElement {
  return createOne(type, withVisibleText(props), key);
}

export function jsxs(type: ElementType, props: Props, key?: Key): ReactElement {
  return createMany(type, withVisibleText(props), key);
}

/** The function that development builds call. */
export function jsxDEV(type: ElementType, props: Props, key?: Key, isStatic = false): ReactElement {
  return (isStatic ? jsxs : jsx)(type, props, key);
}

function withVisibleText(props: Props): Props {
  const changed: Record<string, unknown> = {};
  for (const name of textProps) {
    const value = props[name];
    if (typeof value === "string" && plainText(value) !== value) changed[name] = plainText(value);
  }
  const children = visibleChildren(props.children as ReactNode);
  if (children !== props.children) changed.children = children;
  return Object.keys(changed).length === 0 ? props : { ...props, ...changed };
}

/** Returns the same value if nothing changes. */
function visibleChildren(children: ReactNode): ReactNode {
  if (typeof children === "string") return plainText(children);
  if (!Array.isArray(children)) return children;
  const visible = children.map(visibleChildren);
  return visible.some((child, index) => child !== children[index]) ? visible : children;
}
