const data = JSON.parse(document.getElementById("data").textContent);
window.evidence = showGraph(document.getElementById("view"), data);
