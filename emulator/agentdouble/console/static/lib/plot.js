// Small plots of figures over time, as SVG that is made by calls.

import { h, setText } from "./dom.js";

const KEPT = 60; // points
const [WIDTH, HEIGHT] = [200, 44];

/** @param {string} tag @param {Record<string, any>} attributes */
function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

/** A plot of one figure. @param {string} name @param {(value: number) => string} shown */
export function plot(name, shown) {
  const line = svg("polyline", { fill: "none", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" });
  const area = svg("polygon", { class: "area" });
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": name });
  picture.append(area, line);
  const number = h("strong", null, "–");
  const most = h("small");
  /** @type {number[]} */
  const values = [];
  return {
    element: h("div", { class: "plot" }, h("span", null, name), number, picture, most),
    /** @param {number} value */
    add(value) {
      values.push(value);
      if (values.length > KEPT) values.shift();
      const highest = Math.max(...values);
      const points = values.map((one, place) => {
        const x = WIDTH - (values.length - 1 - place) * (WIDTH / (KEPT - 1));
        return `${x.toFixed(1)},${(HEIGHT - 2 - (highest > 0 ? one / highest : 0) * (HEIGHT - 4)).toFixed(1)}`;
      });
      line.setAttribute("points", points.join(" "));
      const start = points[0].split(",")[0];
      area.setAttribute("points", `${start},${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`);
      picture.setAttribute("aria-label", `${name}: now ${shown(value)}, at most ${shown(highest)}`);
      setText(number, shown(value));
      setText(most, `at most ${shown(highest)}`);
    },
  };
}
