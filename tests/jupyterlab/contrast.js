// How readable the texts below an element are: for each its contrast (WCAG 2) with what is behind.
(() => {
  // No text, or coloured by JupyterLab alone: errors, what is printed, JSON.
  const NOT_OURS = `svg, style, script, .jp-OutputPrompt, [data-mime-type="application/json"],
    [data-mime-type^="application/vnd.jupyter"]`;
  const read = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\d.]+%?/g).map(parseFloat);
    return colour.startsWith("color(") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [more, less] = [light(one), light(other)].sort((a, b) => b - a);
    return (more + 0.05) / (less + 0.05);
  };
  // The element and all it stands in, from the outside in.
  const lineage = (element) => (element ? [...lineage(element.parentElement), element] : []);
  const behind = (element, page = [255, 255, 255]) =>
    lineage(element).reduce((under, one) => over(read(getComputedStyle(one).backgroundColor), under), page);
  const opacity = (element) =>
    lineage(element).reduce((rest, one) => rest * parseFloat(getComputedStyle(one).opacity), 1);
  const shown = (element) => element.checkVisibility({ checkVisibilityCSS: true })
    && element.getClientRects().length > 0 && !element.closest(NOT_OURS);
  const judge = (element, text, page) => {
    const under = behind(element, page);
    const [r, g, b, a] = read(getComputedStyle(element).color);
    const colour = over([r, g, b, a * opacity(element)], under);
    return {
      text: text.slice(0, 80), contrast: contrast(colour, under),
      colour: getComputedStyle(element).color, behind: `rgb(${under.map(Math.round)})`,
    };
  };
  const texts = function* (root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) yield walker.currentNode;
  };
  const measure = (selector, page) => [...document.querySelectorAll(selector)]
    .flatMap((root) => [...texts(root)])
    .filter((node) => node.data.trim() && shown(node.parentElement))
    .map((node) => judge(node.parentElement, node.data.trim(), page ?? undefined));
  return Object.assign(measure, { behind });
})()
