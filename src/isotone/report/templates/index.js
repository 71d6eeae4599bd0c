const field = document.querySelector('.filter input'), rows = [...document.querySelectorAll('.index tbody tr')];
const names = rows.map(row => row.firstElementChild.textContent.toLowerCase());
const filter = () => {
  const wanted = field.value.toLowerCase();
  let seen = 0;
  rows.forEach((row, i) => {
    row.hidden = !names[i].includes(wanted);
    if (!row.hidden) seen++;
  });
  document.querySelector('.filter output').value = wanted ? `${seen} of ${rows.length}` : '';
};
field.addEventListener('input', filter);
filter();
