import type { PointerEvent, RefObject } from "react";
import { useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Stretch } from "./time-scale.ts";
import { TimeScale } from "./time-scale.ts";

const maxZoom = 5000;
const dragThreshold = 4;

interface View {
  readonly zoom: number;
  /** The first visible pixel; `end` follows what happens now. */
  readonly left: number | "end";
}

interface Viewport {
  readonly scale: TimeScale;
  readonly left: number;
  readonly zoom: number;
  zoomBy(factor: number, x?: number): void;
  panBy(pixels: number): void;
  showAll(): void;
  /** Moves a point of time into view, unless it is there. */
  reveal(at: number): void;
}

/** The visible part of a time scale, moved by wheel, drag and calls. */
export function useViewport(
  plot: RefObject<HTMLElement | null>,
  stretches: readonly Stretch[],
  width: number,
): Viewport {
  const [view, setView] = useState<View>({ zoom: 1, left: "end" });
  const { zoom } = view;
  const scale = useMemo(() => new TimeScale(stretches, width, zoom), [stretches, width, zoom]);
  const maxLeft = Math.max(0, scale.width - width);
  const left = view.left === "end" ? maxLeft : Math.min(view.left, maxLeft);
  const clamp = (next: number, limit: number) => (next >= limit - 1 ? "end" : Math.max(0, next));

  const panBy = (pixels: number) => setView({ zoom, left: clamp(left + pixels, maxLeft) });
  const zoomBy = (factor: number, x = width / 2) => {
    const next = Math.min(maxZoom, Math.max(1, zoom * factor));
    const zoomed = new TimeScale(stretches, width, next);
    const at = zoomed.xOf(scale.timeAt(left + x)) - x;
    setView({ zoom: next, left: next === 1 ? "end" : clamp(at, Math.max(0, zoomed.width - width)) });
  };
  const reveal = (at: number) => {
    const x = scale.xOf(at);
    if (x < left + 8 || x > left + width - 8) setView({ zoom, left: clamp(x - width / 2, maxLeft) });
  };

  const onWheel = useEffectEvent((event: WheelEvent) => {
    const isZoom = event.ctrlKey || event.metaKey || event.altKey;
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (isZoom) {
      const box = plot.current?.getBoundingClientRect();
      zoomBy(Math.exp(-event.deltaY * 0.002), event.clientX - (box?.left ?? 0));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY) && maxLeft > 0) {
      panBy(sideways);
    } else {
      return;
    }
    event.preventDefault();
  });
  useEffect(() => {
    const target = plot.current;
    // React's own wheel listeners are passive and could not keep the page from zooming.
    target?.addEventListener("wheel", onWheel, { passive: false });
    return () => target?.removeEventListener("wheel", onWheel);
  }, [plot]);

  return { scale, left, zoom, zoomBy, panBy, showAll: () => setView({ zoom: 1, left: "end" }), reveal };
}

/** Drags the time axis. A press that moved is no click on what is under it. */
export function useDrag(panBy: (pixels: number) => void) {
  const drag = useRef<{ x: number; hasMoved: boolean } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0) drag.current = { x: event.clientX, hasMoved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const { current } = drag;
      if (current === null || event.buttons === 0) return;
      const moved = event.clientX - current.x;
      if (!current.hasMoved && Math.abs(moved) < dragThreshold) return;
      if (!current.hasMoved) event.currentTarget.setPointerCapture(event.pointerId);
      drag.current = { x: event.clientX, hasMoved: true };
      panBy(-moved);
    },
    onPointerCancel: () => {
      drag.current = null;
    },
    onClickCapture: (event: { preventDefault(): void; stopPropagation(): void }) => {
      if (drag.current?.hasMoved === true) {
        event.preventDefault();
        event.stopPropagation();
      }
      drag.current = null;
    },
    onDragStart: (event: { preventDefault(): void }) => event.preventDefault(),
  };
}

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
