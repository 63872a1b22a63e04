// Counts this visit. Sets no cookie, and reads and stores nothing in the browser. It sends the path
// of the page, and the host of the page before it if that is on another site. Nothing else.
(function (page, to) {
  function send() {
    var from = page.referrer ? new URL(page.referrer).host : "";
    var visit = location.pathname + "\n" + (from === location.host ? "" : from);
    if (window.fetch)
      fetch(to, { method: "POST", body: visit, keepalive: true, credentials: "omit",
                  referrerPolicy: "no-referrer" }).catch(function () {});
    else if (navigator.sendBeacon) navigator.sendBeacon(to, visit);
  }
  if (page.prerendering) page.addEventListener("prerenderingchange", send, { once: true });
  else send();
})(document, new URL("beacon", document.currentScript.src).href);
