import type { RefObject } from "react";
import { useLayoutEffect, useState } from "react";

/** The size of an element, kept up to date; 0 until it is known. */
export function useSize(element: RefObject<Element | null>): {
  readonly width: number;
  readonly height: number;
} {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = target;
      setSize((before) => (before.width === width && before.height === height ? before : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(target);
    return () => observer.disconnect();
  }, [element]);
  return size;
}
